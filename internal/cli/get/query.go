package get

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/rest"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"karmada.io/karmada/internal/cli/targetcluster"
)

// targetResult holds the objects of one target.
type targetResult struct {
	place targetcluster.Target
	infos []*resource.Info
	// isSingle is true if one object was requested by name.
	isSingle bool
	// namespace is the namespace that was queried if the user named none.
	namespace string
	err       error
}

// queryAll queries all targets. It returns when all targets have responded or timed out, or when
// ctx ends. It does not wait for pending requests.
func (o *options) queryAll(ctx context.Context, targets []targetcluster.Target, args []string) ([]targetResult, error) {
	results, errs := targetcluster.QueryAll(ctx, targets, o.timeout, func(ctx context.Context, target targetcluster.Target) (targetResult, error) {
		return o.query(ctx, target, args)
	})
	for i := range results {
		results[i].place, results[i].err = targets[i], errs[i]
	}
	return results, ctx.Err()
}

func (o *options) query(ctx context.Context, target targetcluster.Target, args []string) (a targetResult, err error) {
	factory := o.NewFactory(&target, o.timeout.HTTPTimeout())
	if a.namespace, err = checkReachable(ctx, factory, target); err != nil {
		return a, err
	}
	result := o.request(factory, a.namespace, args).Flatten().Do()
	if o.ignoreNotFound {
		result.IgnoreErrors(apierrors.IsNotFound)
	}
	if err := result.Err(); err != nil {
		return a, err
	}
	a.infos, err = result.IntoSingleItemImplied(&a.isSingle).Infos()
	return a, err
}

// checkReachable returns the namespace to query, or an error if the target does not respond.
func checkReachable(ctx context.Context, factory cmdutil.Factory, target targetcluster.Target) (namespace string, err error) {
	if err := targetcluster.CheckReachable(ctx, factory, target); err != nil {
		return "", err
	}
	namespace, _, err = factory.ToRawKubeConfigLoader().Namespace()
	return namespace, err
}

func (o *options) request(factory cmdutil.Factory, namespace string, args []string) *resource.Builder {
	chunk := int64(cmdutil.DefaultChunkSize)
	if *o.printFlags.HumanReadableFlags.SortBy != "" {
		chunk = 0 // sorting needs the complete list
	}
	return factory.NewBuilder().
		Unstructured().
		NamespaceParam(namespace).DefaultNamespace().AllNamespaces(o.allNamespaces).
		LabelSelectorParam(o.labels).
		RequestChunksOf(chunk).
		// The builder modifies its arguments, and several builders run at the same time.
		ResourceTypeOrNameArgs(true, slices.Clone(args)...).
		ContinueOnError().
		Latest().
		TransformRequests(o.requestTable)
}

// requestTable makes the server return a table.
func (o *options) requestTable(request *rest.Request) {
	if !o.isTableOutput() {
		return
	}
	request.SetHeader("Accept", fmt.Sprintf("application/json;as=Table;v=%s;g=%s,application/json", metav1.SchemeGroupVersion.Version, metav1.GroupName))
	if *o.printFlags.HumanReadableFlags.SortBy != "" {
		request.Param("includeObject", "Object")
	}
}

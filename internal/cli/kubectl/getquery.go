package kubectl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/rest"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"karmada.io/karmada/internal/cli/command"
)

// targetResult holds the objects of one target.
type targetResult struct {
	target command.Target
	infos  []*resource.Info
	// isSingle is true if the user requested one object by name.
	isSingle bool
	// namespace is the namespace that was queried.
	namespace string
	err       error
}

// queryAll queries all targets in parallel. It returns when each target has responded or timed out, or when ctx ends.
func (o *getOptions) queryAll(ctx context.Context, targets []command.Target, args []string) ([]targetResult, error) {
	results, errs := command.QueryAll(ctx, targets, o.timeout, func(ctx context.Context, target command.Target) (targetResult, error) {
		return o.query(ctx, target, args)
	})
	for i := range results {
		results[i].target, results[i].err = targets[i], errs[i]
	}
	return results, ctx.Err()
}

func (o *getOptions) query(ctx context.Context, target command.Target, args []string) (a targetResult, err error) {
	factory := o.NewFactory(&target, o.timeout.HTTPTimeout())
	if a.namespace, err = verifyReachable(ctx, factory, target); err != nil {
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

// verifyReachable returns the namespace to query, or an error if the target does not respond.
func verifyReachable(ctx context.Context, factory cmdutil.Factory, target command.Target) (namespace string, err error) {
	if err := command.VerifyReachable(ctx, factory, target); err != nil {
		return "", err
	}
	namespace, _, err = factory.ToRawKubeConfigLoader().Namespace()
	return namespace, err
}

func (o *getOptions) request(factory cmdutil.Factory, namespace string, args []string) *resource.Builder {
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

// requestTable requests a table from the server if the output is a table.
func (o *getOptions) requestTable(request *rest.Request) {
	if !o.isTableOutput() {
		return
	}
	request.SetHeader("Accept", fmt.Sprintf("application/json;as=Table;v=%s;g=%s,application/json", metav1.SchemeGroupVersion.Version,
		metav1.GroupName))
	if *o.printFlags.HumanReadableFlags.SortBy != "" {
		request.Param("includeObject", "Object")
	}
}

// objectID identifies an object by the fields of a NotFound error.
type objectID struct {
	resource schema.GroupResource
	name     string
}

// dropNotFoundErrors removes errors about an object or type that another target has, because not every cluster needs to have
// it. If no target has it, the error stays.
func dropNotFoundErrors(results []targetResult) {
	found, served := map[objectID]bool{}, false
	for _, a := range results {
		served = served || a.err == nil || len(a.infos) > 0
		for _, info := range a.infos {
			if info.Mapping != nil {
				found[objectID{info.Mapping.Resource.GroupResource(), info.Name}] = true
			}
			// A target without the namespace reports the namespace as not found, so record that this target has it.
			found[objectID{corev1.Resource("namespaces"), info.Namespace}] = true
		}
	}
	for i := range results {
		results[i].err = utilerrors.FilterOut(results[i].err, func(err error) bool {
			if isUnknownType(err) {
				return served
			}
			missing, ok := notFoundObject(err)
			return ok && found[missing]
		})
	}
}

// notFoundObject returns the object that the error reports as not found.
func notFoundObject(err error) (objectID, bool) {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return objectID{}, false
	}
	details := status.Status().Details
	return objectID{schema.GroupResource{Group: details.Group, Resource: details.Kind}, details.Name}, details.Name != ""
}

// isUnknownType reports whether the target does not serve the type. It compares the text, because kubectl's request builder
// returns no typed error.
func isUnknownType(err error) bool {
	return strings.HasPrefix(err.Error(), "the server doesn't have a resource type ")
}

// isNotFound reports whether an error means that the target does not have the object or its type.
func isNotFound(err error) bool { return apierrors.IsNotFound(err) || isUnknownType(err) }

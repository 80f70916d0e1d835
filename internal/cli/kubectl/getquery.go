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
	place command.Target
	infos []*resource.Info
	// isSingle is true if one object was requested by name.
	isSingle bool
	// namespace is the namespace that was queried if the user named none.
	namespace string
	err       error
}

// queryAll queries all targets. It returns when all targets have responded or timed out, or when
// ctx ends. It does not wait for pending requests.
func (o *getOptions) queryAll(ctx context.Context, targets []command.Target, args []string) ([]targetResult, error) {
	results, errs := command.QueryAll(ctx, targets, o.timeout, func(ctx context.Context, target command.Target) (targetResult, error) {
		return o.query(ctx, target, args)
	})
	for i := range results {
		results[i].place, results[i].err = targets[i], errs[i]
	}
	return results, ctx.Err()
}

func (o *getOptions) query(ctx context.Context, target command.Target, args []string) (a targetResult, err error) {
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
func checkReachable(ctx context.Context, factory cmdutil.Factory, target command.Target) (namespace string, err error) {
	if err := command.CheckReachable(ctx, factory, target); err != nil {
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

// requestTable makes the server return a table.
func (o *getOptions) requestTable(request *rest.Request) {
	if !o.isTableOutput() {
		return
	}
	request.SetHeader("Accept", fmt.Sprintf("application/json;as=Table;v=%s;g=%s,application/json", metav1.SchemeGroupVersion.Version, metav1.GroupName))
	if *o.printFlags.HumanReadableFlags.SortBy != "" {
		request.Param("includeObject", "Object")
	}
}

// objectID identifies an object in the same way as the errors of API servers.
type objectID struct {
	resource schema.GroupResource
	name     string
}

// dropNotFoundErrors removes errors about missing objects and unknown types from each result if
// another target has the object or the type, because not every cluster needs to have it. If no
// target has it, the error stays.
func dropNotFoundErrors(results []targetResult) {
	found, served := map[objectID]bool{}, false
	for _, a := range results {
		served = served || a.err == nil || len(a.infos) > 0
		for _, info := range a.infos {
			if info.Mapping != nil {
				found[objectID{info.Mapping.Resource.GroupResource(), info.Name}] = true
			}
			// A target without the namespace returns an error about the namespace for each object,
			// so record that another target has the namespace.
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

// isUnknownType reports whether an error means that the target does not serve the type. It
// compares the text, because the request builder of kubectl returns only a text.
func isUnknownType(err error) bool {
	return strings.HasPrefix(err.Error(), "the server doesn't have a resource type ")
}

// isNotFound reports whether an error means that the target does not have the object or its type.
func isNotFound(err error) bool { return apierrors.IsNotFound(err) || isUnknownType(err) }

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

	"karmada.io/karmada/internal/cli/place"
)

// answer is what one place knows.
type answer struct {
	place place.Place
	infos []*resource.Info
	// single tells that one object was asked for by name.
	single bool
	// namespace is where objects without a given namespace were looked for.
	namespace string
	err       error
}

// askAll asks all places. It returns when all have answered, in time or not, or
// ctx ends; requests that are under way then are left behind.
func (o *options) askAll(ctx context.Context, places []place.Place, args []string) ([]answer, error) {
	answers, errs := place.AskAll(ctx, places, o.patience, func(ctx context.Context, where place.Place) (answer, error) {
		return o.ask(ctx, where, args)
	})
	for i := range answers {
		answers[i].place, answers[i].err = places[i], errs[i]
	}
	return answers, ctx.Err()
}

func (o *options) ask(ctx context.Context, where place.Place, args []string) (a answer, err error) {
	factory := o.Factory(&where, o.patience.RequestLimit())
	if a.namespace, err = reach(ctx, factory, where); err != nil {
		return a, err
	}
	result := o.request(factory, a.namespace, args).Flatten().Do()
	if o.ignoreNotFound {
		result.IgnoreErrors(apierrors.IsNotFound)
	}
	if err := result.Err(); err != nil {
		return a, err
	}
	a.infos, err = result.IntoSingleItemImplied(&a.single).Infos()
	return a, err
}

// reach makes sure that a place answers and returns the namespace to look in.
func reach(ctx context.Context, factory cmdutil.Factory, where place.Place) (namespace string, err error) {
	if err := place.Reach(ctx, factory, where); err != nil {
		return "", err
	}
	namespace, _, err = factory.ToRawKubeConfigLoader().Namespace()
	return namespace, err
}

func (o *options) request(factory cmdutil.Factory, namespace string, args []string) *resource.Builder {
	chunk := int64(cmdutil.DefaultChunkSize)
	if *o.print.HumanReadableFlags.SortBy != "" {
		chunk = 0 // all at once, to be sorted as a whole
	}
	return factory.NewBuilder().
		Unstructured().
		NamespaceParam(namespace).DefaultNamespace().AllNamespaces(o.allNamespaces).
		LabelSelectorParam(o.labels).
		RequestChunksOf(chunk).
		// The builder writes into what it is given, and all places are asked at once.
		ResourceTypeOrNameArgs(true, slices.Clone(args)...).
		ContinueOnError().
		Latest().
		TransformRequests(o.asTable)
}

// asTable makes the server lay out the table.
func (o *options) asTable(request *rest.Request) {
	if !o.table() {
		return
	}
	request.SetHeader("Accept", fmt.Sprintf("application/json;as=Table;v=%s;g=%s,application/json", metav1.SchemeGroupVersion.Version, metav1.GroupName))
	if *o.print.HumanReadableFlags.SortBy != "" {
		request.Param("includeObject", "Object")
	}
}

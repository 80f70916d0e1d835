package get

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/rest"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"karmada.io/karmada/internal/registration"
)

// answer is what one place knows.
type answer struct {
	place place
	infos []*resource.Info
	// single tells that one object was asked for by name.
	single bool
	// namespace is where objects without a given namespace were looked for.
	namespace string
	err       error
}

// atOnce is how many members are asked at the same time.
const atOnce = 16

// askAll asks all places, several at a time. It returns when all have answered or
// ctx ends; requests that are under way then are left behind.
func (o *options) askAll(ctx context.Context, places []place, args []string) ([]answer, error) {
	answers := make([]answer, len(places))
	var asking sync.WaitGroup
	turns := make(chan struct{}, atOnce)
	for i, where := range places {
		asking.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			if ctx.Err() == nil {
				answers[i] = o.ask(ctx, where, args)
			}
		})
	}
	done := make(chan struct{})
	go func() {
		asking.Wait()
		close(done)
	}()
	select {
	case <-done:
		return answers, ctx.Err()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (o *options) ask(ctx context.Context, where place, args []string) answer {
	factory := o.factory(where)
	a := answer{place: where}
	if a.namespace, a.err = reach(ctx, factory, where); a.err != nil {
		return a
	}
	result := o.request(factory, a.namespace, args).Flatten().Do()
	if o.ignoreNotFound {
		result.IgnoreErrors(apierrors.IsNotFound)
	}
	if a.err = result.Err(); a.err != nil {
		return a
	}
	a.infos, a.err = result.IntoSingleItemImplied(&a.single).Infos()
	return a
}

// reach makes sure that a place answers, before its types are looked up: that
// would take several failures to give up. It returns the namespace to look in.
func reach(ctx context.Context, factory cmdutil.Factory, where place) (namespace string, err error) {
	api, err := factory.RESTClient()
	if err != nil {
		return "", err
	}
	if err := api.Get().AbsPath("/api").Do(ctx).Error(); err != nil {
		side := "the control plane"
		if where.member {
			side = fmt.Sprintf("member %q", where.name)
		}
		err = fmt.Errorf("reaching %s: %w", side, err)
		if advice := registration.Advice(err, side); advice != "" {
			err = fmt.Errorf("%w\n%s", err, advice)
		}
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
		ResourceTypeOrNameArgs(true, args...).
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

package interpreters

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"karmada.io/karmada/internal/domain/interpreter"
)

func kindNamed(name string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "example.io", Version: "v1", Kind: name}
}

func namesOf(kinds interpreter.Kinds) string {
	if kinds.IsAll() {
		return "all"
	}
	var names []string
	for _, kind := range kinds.List() {
		names = append(names, kind.Kind)
	}
	return strings.Join(names, " ")
}

func TestChangesAreHandledTogether(t *testing.T) {
	many := make([]string, 0, 2000)
	for i := range cap(many) {
		many = append(many, fmt.Sprintf("Kind%d", i))
	}
	tests := map[string]struct {
		// before are the changes before the first call of the handler. during are the changes while
		// the handler runs.
		before, during []string
		want           []string
	}{
		"one change": {before: []string{"A"}, want: []string{"A"}},
		"changes before the start are handled together":   {before: []string{"B", "A", "B"}, want: []string{"A B"}},
		"changes during a call are handled together":      {before: []string{"A"}, during: []string{"A", "B", "A", "B"}, want: []string{"A", "A B"}},
		"too many kinds become one change of all kinds":   {before: many, want: []string{"all"}},
		"too many kinds during a call become all kinds":   {before: []string{"A"}, during: many, want: []string{"A", "all"}},
		"without a change, the handler is not called":     {},
		"the removal of rules that never were is no news": {before: []string{"-A"}},
		"the removal of rules is a change":                {before: []string{"A"}, during: []string{"-A"}, want: []string{"A", "A"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				table := &Table{}
				change := func(names []string) {
					for _, name := range names {
						if removed, ok := strings.CutPrefix(name, "-"); ok {
							table.Delete(kindNamed(removed))
							continue
						}
						table.Set(kindNamed(name), fixedReplicas(1))
					}
				}
				changes := Observe(interpreter.New(table))
				change(test.before)
				ctx, cancel := context.WithCancel(t.Context())
				var running sync.WaitGroup
				resume := make(chan struct{})
				var got []string
				running.Go(func() {
					changes.Handle(ctx, func(_ context.Context, kinds interpreter.Kinds) {
						got = append(got, namesOf(kinds))
						<-resume
					})
				})
				synctest.Wait()
				change(test.during)
				close(resume)
				synctest.Wait()
				cancel()
				running.Wait()
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("handled changes (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestObserverSeesTheNewRules(t *testing.T) {
	table := &Table{}
	var got []bool
	stop := table.OnChange(func(interpreter.Kinds) { got = append(got, table.Rules(deployments).Replicas != nil) })
	table.Set(deployments, fixedReplicas(1))
	table.Delete(deployments)
	stop()
	table.Set(deployments, fixedReplicas(2))
	if diff := cmp.Diff([]bool{true, false}, got); diff != "" {
		t.Errorf("rules at the time of the announcement (-want +got):\n%s", diff)
	}
}

func TestHandleEndsWithItsContext(t *testing.T) {
	tests := map[string]interpreter.Source{
		"rules that change":     &Table{},
		"rules that are fixed":  interpreter.New(),
		"sources that change":   interpreter.New(&Table{}),
		"only built-in sources": newInterpreter(t, Options{}),
	}
	for name, rules := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				changes := Observe(rules)
				go changes.Handle(ctx, func(context.Context, interpreter.Kinds) { t.Error("the handler was called") })
				synctest.Wait()
				cancel()
				synctest.Wait()
				if table, ok := rules.(*Table); ok {
					if table.Set(deployments, fixedReplicas(1)); len(table.observers) != 0 {
						t.Errorf("%d observers remain", len(table.observers))
					}
				}
			})
		})
	}
}

func TestWorkIndex(t *testing.T) {
	index := &WorkIndex{}
	index.Add(workNamed("web"), kindNamed("A"))
	index.Add(workNamed("web"), kindNamed("A"))
	index.Add(workNamed("web"), kindNamed("B"))
	index.Add(workNamed("db"), kindNamed("B"))
	worksOf := func(kinds interpreter.Kinds) []string {
		var names []string
		for _, work := range index.Works(kinds) {
			names = append(names, work.Name)
		}
		slices.Sort(names)
		return names
	}
	before := map[string][]string{
		"A": worksOf(interpreter.KindsOf(kindNamed("A"))), "A and B": worksOf(interpreter.KindsOf(kindNamed("A"), kindNamed("B"))),
		"C": worksOf(interpreter.KindsOf(kindNamed("C"))), "all": worksOf(interpreter.AllKinds()),
	}
	if diff := cmp.Diff(map[string][]string{"A": {"web"}, "A and B": {"db", "web"}, "C": nil, "all": {"db", "web"}}, before); diff != "" {
		t.Errorf("Works by kind (-want +got):\n%s", diff)
	}
	index.Delete(workNamed("web"))
	if diff := cmp.Diff([]string{"db"}, worksOf(interpreter.AllKinds())); diff != "" {
		t.Errorf("Works after a deletion (-want +got):\n%s", diff)
	}
	index.Add(types.NamespacedName{Namespace: "karmada-es-m2", Name: "web"}, kindNamed("B"))
	index.DeleteNamespace("karmada-es-m1")
	if diff := cmp.Diff([]string{"web"}, worksOf(interpreter.AllKinds())); diff != "" {
		t.Errorf("Works after the removal of a cluster (-want +got):\n%s", diff)
	}
	index.DeleteNamespace("karmada-es-m2")
	if len(index.byKind) != 0 {
		t.Errorf("the index still has %v", index.byKind)
	}
}

func workNamed(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "karmada-es-m1", Name: name}
}

func TestSourceEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := &Table{}
		queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
		defer queue.ShutDown()
		ctx, cancel := context.WithCancel(t.Context())
		watched := NewSource(table, func(_ context.Context, kinds interpreter.Kinds) []string { return []string{namesOf(kinds)} })
		table.Set(kindNamed("A"), fixedReplicas(1))
		if err := watched.Start(ctx, queue); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		table.Set(kindNamed("B"), fixedReplicas(1))
		synctest.Wait()
		if got, _ := queue.Get(); got != "A" || queue.Len() != 0 {
			t.Errorf("queued %q and %d more", got, queue.Len())
		}
	})
}

package kubectl

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/cli-runtime/pkg/resource"
	kubectlget "k8s.io/kubectl/pkg/cmd/get"

	"karmada.io/karmada/internal/cli/command"
)

var (
	karmada = command.Target{}
	east    = command.Target{Cluster: "east"}
	west    = command.Target{Cluster: "west"}
)

type row struct {
	name, namespace string
	managed         bool
}

// newServerTable returns the response of an API server.
func newServerTable(columns []string, rows ...row) *unstructured.Unstructured {
	var definitions, content []any
	for i, name := range columns {
		format := ""
		if i == 0 {
			format = "name"
		}
		definitions = append(definitions, map[string]any{"name": name, "type": "string", "format": format, "description": "", "priority": int64(0)})
	}
	for _, r := range rows {
		metadata := map[string]any{"name": r.name, "namespace": r.namespace}
		if r.managed {
			metadata["labels"] = map[string]any{"karmada.io/managed": "true"}
		}
		cells := []any{r.name}
		for range len(columns) - 1 {
			cells = append(cells, "x")
		}
		content = append(content, map[string]any{
			"cells":  cells,
			"object": map[string]any{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata},
		})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": map[string]any{"resourceVersion": "1"},
		"columnDefinitions": definitions, "rows": content,
	}}
}

func newInfo(group, resourceName, kind string, object *unstructured.Unstructured) *resource.Info {
	version := schema.GroupVersion{Group: group, Version: "v1"}
	return &resource.Info{
		Namespace: "shop", Object: object,
		Mapping: &meta.RESTMapping{Resource: version.WithResource(resourceName), GroupVersionKind: version.WithKind(kind), Scope: meta.RESTScopeNamespace},
	}
}

func deployments(object *unstructured.Unstructured) *resource.Info {
	return newInfo("apps", "deployments", "Deployment", object)
}

func pods(object *unstructured.Unstructured) *resource.Info {
	return newInfo("", "pods", "Pod", object)
}

func services(object *unstructured.Unstructured) *resource.Info {
	return newInfo("", "services", "Service", object)
}

func testOptions() (o *getOptions, out, talk interface{ String() string }) {
	watches, _, stdout, stderr := genericiooptions.NewTestIOStreams()
	return &getOptions{
		ClientFlags: command.ClientFlags{Program: &command.Program{Name: "karmadactl", IOStreams: watches}}, printFlags: kubectlget.NewGetPrintFlags(),
	}, stdout, stderr
}

func TestPrintTables(t *testing.T) {
	columns := []string{"Name", "Ready"}
	tests := map[string]struct {
		results []targetResult
		set     func(*getOptions)
		want    string
		talk    string
	}{
		"one table with the rows of all targets": {
			results: []targetResult{
				{target: karmada, infos: []*resource.Info{deployments(newServerTable(columns, row{name: "web"}))}},
				{target: east, infos: []*resource.Info{deployments(newServerTable(columns, row{name: "web", managed: true}, row{name: "own"}))}},
				{target: west, infos: []*resource.Info{deployments(newServerTable(columns, row{name: "web", managed: true}))}},
			},
			want: `
NAME   CLUSTER   READY   ADOPTION
web    Karmada   x       -
web    east      x       Y
own    east      x       N
web    west      x       Y
`,
		},
		"kinds have separate tables with prefixes": {
			results: []targetResult{
				{target: karmada, infos: []*resource.Info{deployments(newServerTable(columns, row{name: "web"})), pods(newServerTable(columns, row{name: "p"}))}},
				{target: east, infos: []*resource.Info{deployments(newServerTable(columns, row{name: "web"}))}},
			},
			want: `
NAME                  CLUSTER   READY
deployment.apps/web   Karmada   x
deployment.apps/web   east      x

NAME    CLUSTER   READY
pod/p   Karmada   x
`,
		},
		"prefixes are shown although only one of several kinds was found": {
			results: []targetResult{{target: east, infos: []*resource.Info{services(newServerTable(columns)), deployments(newServerTable(columns, row{name: "web"}))}}},
			want: `
NAME                  CLUSTER   READY   ADOPTION
deployment.apps/web   east      x       N
`,
		},
		"ADOPTION of Pods in the wide table": {
			results: []targetResult{{target: east, infos: []*resource.Info{pods(newServerTable(columns, row{name: "p", managed: true}))}}},
			set:     func(o *getOptions) { *o.printFlags.OutputFormat = "wide" },
			want: `
NAME   CLUSTER   READY   ADOPTION
p      east      x       Y
`,
		},
		"a member with other columns has a separate table next to its kind": {
			results: []targetResult{
				{target: east, infos: []*resource.Info{deployments(newServerTable(columns, row{name: "web"})), services(newServerTable(columns, row{name: "p"}))}},
				{target: west, infos: []*resource.Info{deployments(newServerTable([]string{"Name", "Ready", "New"}, row{name: "web"}))}},
			},
			want: `
NAME                  CLUSTER   READY   ADOPTION
deployment.apps/web   east      x       N

NAME                  CLUSTER   READY   NEW   ADOPTION
deployment.apps/web   west      x       x     N

NAME        CLUSTER   READY   ADOPTION
service/p   east      x       N
`,
		},
		"all namespaces: the namespace is the first column": {
			results: []targetResult{{target: east, infos: []*resource.Info{deployments(newServerTable(columns, row{name: "web", namespace: "shop"}))}}},
			set:     func(o *getOptions) { o.allNamespaces = true },
			want: `
NAMESPACE   NAME   CLUSTER   READY   ADOPTION
shop        web    east      x       N
`,
		},
		"no headers": {
			results: []targetResult{{target: east, infos: []*resource.Info{deployments(newServerTable(columns, row{name: "web"}))}}},
			set:     func(o *getOptions) { *o.printFlags.NoHeaders = true },
			want:    "\nweb   east   x     N\n",
		},
		"sorted over all targets": {
			results: []targetResult{
				{target: east, infos: []*resource.Info{deployments(newServerTable(columns, row{name: "b"}))}},
				{target: west, infos: []*resource.Info{deployments(newServerTable(columns, row{name: "a"}))}},
			},
			set: func(o *getOptions) { *o.printFlags.HumanReadableFlags.SortBy = ".metadata.name" },
			want: `
NAME   CLUSTER   READY   ADOPTION
a      west      x       N
b      east      x       N
`,
		},
		"no objects in a namespace": {
			results: []targetResult{{target: east, namespace: "shop", infos: []*resource.Info{deployments(newServerTable(columns))}}},
			want:    "\n", talk: "No resources found in shop namespace.\n",
		},
		"no objects in all namespaces": {
			results: []targetResult{{target: east}}, set: func(o *getOptions) { o.allNamespaces = true },
			want: "\n", talk: "No resources found\n",
		},
		"no objects because a target failed": {
			results: []targetResult{{target: east, err: errors.New("no")}},
			want:    "\n",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o, out, talk := testOptions()
			if test.set != nil {
				test.set(o)
			}
			if err := o.printTables(test.results); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.TrimPrefix(test.want, "\n"), trimTrailingSpace(out.String())); diff != "" {
				t.Errorf("stdout (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.talk, talk.String()); diff != "" {
				t.Errorf("stderr (-want +got):\n%s", diff)
			}
		})
	}
}

// trimTrailingSpace removes the spaces that pad the last column.
func trimTrailingSpace(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

func newObject(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": name}}}
}

func TestPrintObjects(t *testing.T) {
	tests := map[string]struct {
		results []targetResult
		format  string
		want    string
	}{
		"one requested object": {
			results: []targetResult{{target: karmada, isSingle: true, infos: []*resource.Info{deployments(newObject("web"))}}},
			format:  "jsonpath={.kind} {.metadata.name}",
			want:    "Deployment web",
		},
		"the same object of several targets is a list with annotations": {
			results: []targetResult{
				{target: karmada, isSingle: true, infos: []*resource.Info{deployments(newObject("web"))}},
				{target: east, isSingle: true, infos: []*resource.Info{deployments(newObject("web"))}},
			},
			format: `jsonpath={.kind}{range .items[*]} {.metadata.annotations.resource\.karmada\.io/query-from-cluster}/{.metadata.name}{end}`,
			want:   "List /web east/web",
		},
		"a list stays one with one object": {
			results: []targetResult{{target: karmada, infos: []*resource.Info{deployments(newObject("web"))}}},
			format:  "jsonpath={.kind}",
			want:    "List",
		},
		"names": {
			results: []targetResult{{target: east, infos: []*resource.Info{deployments(newObject("a")), deployments(newObject("b"))}}},
			format:  "name",
			want:    "deployment.apps/a\ndeployment.apps/b\n",
		},
		"no objects are an empty list": {
			results: []targetResult{{target: east}},
			format:  "jsonpath={.kind}{.items}",
			want:    "List[]",
		},
		"a failure is not an empty list": {
			results: []targetResult{{target: east, err: errors.New("no")}},
			format:  "json",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o, out, _ := testOptions()
			*o.printFlags.OutputFormat = test.format
			if err := o.printObjects(test.results); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, out.String()); diff != "" {
				t.Errorf("stdout (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMergeErrors(t *testing.T) {
	err := errors.Join(mergeErrors([]targetResult{{target: karmada, err: errors.New("a")}, {target: east}, {target: west, err: errors.New("b")}})...)
	if want := "a\ncluster(west): b"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestWatchSeveralTargets(t *testing.T) {
	columns := []string{"Name", "Ready"}
	o, out, _ := testOptions()
	newWatch := func(target command.Target, first *unstructured.Unstructured, later ...watch.Event) *targetWatch {
		changes := watch.NewFakeWithChanSize(len(later)+1, false)
		for _, event := range later {
			changes.Action(event.Type, event.Object)
		}
		changes.Stop()
		s, err := o.newTargetWatch(target, []*resource.Info{deployments(first)})
		if err != nil {
			t.Fatal(err)
		}
		s.events = changes
		return s
	}
	// Later tables of a watch have no column definitions.
	later := func(r row) *unstructured.Unstructured {
		table := newServerTable(columns, r)
		table.Object["columnDefinitions"] = nil
		return table
	}
	o.watch, o.outputWatchEvents = true, true
	printer, err := o.newPrinter(deployments(nil).Mapping, false)
	if err != nil {
		t.Fatal(err)
	}
	output := &watchPrinter{getOptions: o, printer: printer, out: printers.GetNewTabWriter(o.Program.Out)}
	watches := []*targetWatch{
		newWatch(karmada, newServerTable(columns, row{name: "web"})),
		newWatch(east, newServerTable(columns), watch.Event{Type: watch.Added, Object: later(row{name: "web", managed: true})}, watch.Event{Type: watch.Deleted, Object: later(row{name: "web", managed: true})}),
	}
	if err := output.printInitial(watches); err != nil {
		t.Fatal(err)
	}
	if errs := output.printEvents(t.Context(), watches); len(errs) > 0 {
		t.Fatal(errs)
	}
	want := `EVENT      NAME   CLUSTER   READY   ADOPTION
ADDED      web    Karmada   x       N
ADDED      web    east      x       Y
DELETED    web    east      x       Y
`
	if diff := cmp.Diff(want, trimTrailingSpace(out.String())); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
}

// The server sends the column definitions only in the first event, which contains the existing
// object. With --watch-only, this event is skipped.
func TestWatchOnlyHasColumnsOfList(t *testing.T) {
	present := newServerTable([]string{"Name", "Ready"}, row{name: "web", managed: true})
	later := present.DeepCopy()
	later.Object["columnDefinitions"] = nil
	o, out, _ := testOptions()
	o.watchOnly = true
	s, err := o.newTargetWatch(east, []*resource.Info{deployments(present)})
	if err != nil {
		t.Fatal(err)
	}
	changes := watch.NewFakeWithChanSize(2, false)
	changes.Add(present)
	changes.Modify(later)
	changes.Stop()
	s.events, s.skipsInitial = changes, true
	printer, err := o.newPrinter(s.mapping, false)
	if err != nil {
		t.Fatal(err)
	}
	output := &watchPrinter{getOptions: o, printer: printer, out: printers.GetNewTabWriter(o.Program.Out)}
	if err := errors.Join(append(output.printEvents(t.Context(), []*targetWatch{s}), output.printInitial([]*targetWatch{s}))...); err != nil {
		t.Fatal(err)
	}
	want := `NAME   CLUSTER   READY   ADOPTION
web    east      x       Y
`
	if diff := cmp.Diff(want, trimTrailingSpace(out.String())); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
}

func TestWatchError(t *testing.T) {
	changes := watch.NewFakeWithChanSize(2, false)
	changes.Error(&metav1.Status{Message: "too old"})
	o, _, _ := testOptions()
	output := &watchPrinter{getOptions: o, out: printers.GetNewTabWriter(o.Program.Out)}
	errs := output.printEvents(t.Context(), []*targetWatch{{target: east, mapping: deployments(nil).Mapping, events: changes}})
	if err := errors.Join(errs...); err == nil || err.Error() != "cluster(east): too old" {
		t.Errorf("got %v", err)
	}
}

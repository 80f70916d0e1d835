package get

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
	"karmada.io/karmada/internal/cli/place"
)

var (
	karmada = place.Place{}
	east    = place.Place{Cluster: "east"}
	west    = place.Place{Cluster: "west"}
)

type row struct {
	name, namespace string
	managed         bool
}

// serverTable is what an API server answers, as it arrives.
func serverTable(columns []string, rows ...row) *unstructured.Unstructured {
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

func info(group, resourceName, kind string, object *unstructured.Unstructured) *resource.Info {
	version := schema.GroupVersion{Group: group, Version: "v1"}
	return &resource.Info{
		Namespace: "shop", Object: object,
		Mapping: &meta.RESTMapping{Resource: version.WithResource(resourceName), GroupVersionKind: version.WithKind(kind), Scope: meta.RESTScopeNamespace},
	}
}

func deployments(object *unstructured.Unstructured) *resource.Info {
	return info("apps", "deployments", "Deployment", object)
}

func pods(object *unstructured.Unstructured) *resource.Info {
	return info("", "pods", "Pod", object)
}

func services(object *unstructured.Unstructured) *resource.Info {
	return info("", "services", "Service", object)
}

func testOptions() (o *options, out, talk interface{ String() string }) {
	streams, _, stdout, stderr := genericiooptions.NewTestIOStreams()
	return &options{
		Access: place.Access{Program: &command.Program{Name: "karmadactl", IOStreams: streams}}, print: kubectlget.NewGetPrintFlags(),
	}, stdout, stderr
}

func TestTables(t *testing.T) {
	columns := []string{"Name", "Ready"}
	tests := map[string]struct {
		answers []answer
		set     func(*options)
		want    string
		talk    string
	}{
		"rows of all places stand in one table": {
			answers: []answer{
				{place: karmada, infos: []*resource.Info{deployments(serverTable(columns, row{name: "web"}))}},
				{place: east, infos: []*resource.Info{deployments(serverTable(columns, row{name: "web", managed: true}, row{name: "own"}))}},
				{place: west, infos: []*resource.Info{deployments(serverTable(columns, row{name: "web", managed: true}))}},
			},
			want: `
NAME   CLUSTER   READY   ADOPTION
web    Karmada   x       -
web    east      x       Y
own    east      x       N
web    west      x       Y
`,
		},
		"kinds stand apart and are told by prefixes, and look alike beside pods": {
			answers: []answer{
				{place: karmada, infos: []*resource.Info{deployments(serverTable(columns, row{name: "web"})), pods(serverTable(columns, row{name: "p"}))}},
				{place: east, infos: []*resource.Info{deployments(serverTable(columns, row{name: "web"}))}},
			},
			want: `
NAME                  CLUSTER   READY
deployment.apps/web   Karmada   x
deployment.apps/web   east      x

NAME    CLUSTER   READY
pod/p   Karmada   x
`,
		},
		"one of several kinds is told by prefixes also where no other one was found": {
			answers: []answer{{place: east, infos: []*resource.Info{services(serverTable(columns)), deployments(serverTable(columns, row{name: "web"}))}}},
			want: `
NAME                  CLUSTER   READY   ADOPTION
deployment.apps/web   east      x       N
`,
		},
		"pods show their adoption in the wide table": {
			answers: []answer{{place: east, infos: []*resource.Info{pods(serverTable(columns, row{name: "p", managed: true}))}}},
			set:     func(o *options) { *o.print.OutputFormat = "wide" },
			want: `
NAME   CLUSTER   READY   ADOPTION
p      east      x       Y
`,
		},
		"a member with other columns has a table of its own, beside its kind": {
			answers: []answer{
				{place: east, infos: []*resource.Info{deployments(serverTable(columns, row{name: "web"})), services(serverTable(columns, row{name: "p"}))}},
				{place: west, infos: []*resource.Info{deployments(serverTable([]string{"Name", "Ready", "New"}, row{name: "web"}))}},
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
		"all namespaces: the namespace stands first": {
			answers: []answer{{place: east, infos: []*resource.Info{deployments(serverTable(columns, row{name: "web", namespace: "shop"}))}}},
			set:     func(o *options) { o.allNamespaces = true },
			want: `
NAMESPACE   NAME   CLUSTER   READY   ADOPTION
shop        web    east      x       N
`,
		},
		"no headers": {
			answers: []answer{{place: east, infos: []*resource.Info{deployments(serverTable(columns, row{name: "web"}))}}},
			set:     func(o *options) { *o.print.NoHeaders = true },
			want:    "\nweb   east   x     N\n",
		},
		"sorted over all places": {
			answers: []answer{
				{place: east, infos: []*resource.Info{deployments(serverTable(columns, row{name: "b"}))}},
				{place: west, infos: []*resource.Info{deployments(serverTable(columns, row{name: "a"}))}},
			},
			set: func(o *options) { *o.print.HumanReadableFlags.SortBy = ".metadata.name" },
			want: `
NAME   CLUSTER   READY   ADOPTION
a      west      x       N
b      east      x       N
`,
		},
		"nothing in a namespace": {
			answers: []answer{{place: east, namespace: "shop", infos: []*resource.Info{deployments(serverTable(columns))}}},
			want:    "\n", talk: "No resources found in shop namespace.\n",
		},
		"nothing anywhere": {
			answers: []answer{{place: east}}, set: func(o *options) { o.allNamespaces = true },
			want: "\n", talk: "No resources found\n",
		},
		"nothing, since somebody failed": {
			answers: []answer{{place: east, err: errors.New("no")}},
			want:    "\n",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o, out, talk := testOptions()
			if test.set != nil {
				test.set(o)
			}
			if err := o.printTables(test.answers); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.TrimPrefix(test.want, "\n"), trimmed(out.String())); diff != "" {
				t.Errorf("stdout (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.talk, talk.String()); diff != "" {
				t.Errorf("stderr (-want +got):\n%s", diff)
			}
		})
	}
}

// trimmed takes away what pads the last column.
func trimmed(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

func object(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": name}}}
}

func TestObjectsForPrograms(t *testing.T) {
	tests := map[string]struct {
		answers []answer
		format  string
		want    string
	}{
		"one object that was asked for": {
			answers: []answer{{place: karmada, single: true, infos: []*resource.Info{deployments(object("web"))}}},
			format:  "jsonpath={.kind} {.metadata.name}",
			want:    "Deployment web",
		},
		"the same object in several places is a list, which says where": {
			answers: []answer{
				{place: karmada, single: true, infos: []*resource.Info{deployments(object("web"))}},
				{place: east, single: true, infos: []*resource.Info{deployments(object("web"))}},
			},
			format: `jsonpath={.kind}{range .items[*]} {.metadata.annotations.resource\.karmada\.io/query-from-cluster}/{.metadata.name}{end}`,
			want:   "List /web east/web",
		},
		"a list stays one with one object": {
			answers: []answer{{place: karmada, infos: []*resource.Info{deployments(object("web"))}}},
			format:  "jsonpath={.kind}",
			want:    "List",
		},
		"names": {
			answers: []answer{{place: east, infos: []*resource.Info{deployments(object("a")), deployments(object("b"))}}},
			format:  "name",
			want:    "deployment.apps/a\ndeployment.apps/b\n",
		},
		"nothing is an empty list": {
			answers: []answer{{place: east}},
			format:  "jsonpath={.kind}{.items}",
			want:    "List[]",
		},
		"a failure is not an empty list": {
			answers: []answer{{place: east, err: errors.New("no")}},
			format:  "json",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o, out, _ := testOptions()
			*o.print.OutputFormat = test.format
			if err := o.printObjects(test.answers); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, out.String()); diff != "" {
				t.Errorf("stdout (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFailuresNameTheMember(t *testing.T) {
	err := errors.Join(failures([]answer{{place: karmada, err: errors.New("a")}, {place: east}, {place: west, err: errors.New("b")}})...)
	if want := "a\ncluster(west): b"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestChangesOfSeveralPlacesShareOneTable(t *testing.T) {
	columns := []string{"Name", "Ready"}
	o, out, _ := testOptions()
	streamOf := func(where place.Place, first *unstructured.Unstructured, later ...watch.Event) *stream {
		changes := watch.NewFakeWithChanSize(len(later)+1, false)
		for _, event := range later {
			changes.Action(event.Type, event.Object)
		}
		changes.Stop()
		s, err := o.newStream(where, []*resource.Info{deployments(first)})
		if err != nil {
			t.Fatal(err)
		}
		s.changes = changes
		return s
	}
	// Later tables of a watch come without definitions of columns.
	later := func(r row) *unstructured.Unstructured {
		table := serverTable(columns, r)
		table.Object["columnDefinitions"] = nil
		return table
	}
	o.watch, o.outputWatchEvents = true, true
	printer, err := o.printer(deployments(nil).Mapping, false)
	if err != nil {
		t.Fatal(err)
	}
	show := &shown{options: o, printer: printer, out: printers.GetNewTabWriter(o.Program.Out)}
	streams := []*stream{
		streamOf(karmada, serverTable(columns, row{name: "web"})),
		streamOf(east, serverTable(columns), watch.Event{Type: watch.Added, Object: later(row{name: "web", managed: true})}, watch.Event{Type: watch.Deleted, Object: later(row{name: "web", managed: true})}),
	}
	if err := show.firsts(streams); err != nil {
		t.Fatal(err)
	}
	if errs := show.changes(t.Context(), streams); len(errs) > 0 {
		t.Fatal(errs)
	}
	want := `EVENT      NAME   CLUSTER   READY   ADOPTION
ADDED      web    Karmada   x       N
ADDED      web    east      x       Y
DELETED    web    east      x       Y
`
	if diff := cmp.Diff(want, trimmed(out.String())); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
}

// The server defines the columns in the first event, which is what is there
// already: of that only changes are wanted.
func TestChangesAloneHaveTheColumnsOfTheList(t *testing.T) {
	present := serverTable([]string{"Name", "Ready"}, row{name: "web", managed: true})
	later := present.DeepCopy()
	later.Object["columnDefinitions"] = nil
	o, out, _ := testOptions()
	o.watchOnly = true
	s, err := o.newStream(east, []*resource.Info{deployments(present)})
	if err != nil {
		t.Fatal(err)
	}
	changes := watch.NewFakeWithChanSize(2, false)
	changes.Add(present)
	changes.Modify(later)
	changes.Stop()
	s.changes, s.skipFirst = changes, true
	printer, err := o.printer(s.mapping, false)
	if err != nil {
		t.Fatal(err)
	}
	show := &shown{options: o, printer: printer, out: printers.GetNewTabWriter(o.Program.Out)}
	if err := errors.Join(append(show.changes(t.Context(), []*stream{s}), show.firsts([]*stream{s}))...); err != nil {
		t.Fatal(err)
	}
	want := `NAME   CLUSTER   READY   ADOPTION
web    east      x       Y
`
	if diff := cmp.Diff(want, trimmed(out.String())); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
}

func TestAWatchThatBreaksIsAnError(t *testing.T) {
	changes := watch.NewFakeWithChanSize(2, false)
	changes.Error(&metav1.Status{Message: "too old"})
	o, _, _ := testOptions()
	show := &shown{options: o, out: printers.GetNewTabWriter(o.Program.Out)}
	errs := show.changes(t.Context(), []*stream{{place: east, mapping: deployments(nil).Mapping, changes: changes}})
	if err := errors.Join(errs...); err == nil || err.Error() != "cluster(east): too old" {
		t.Errorf("got %v", err)
	}
}

package fieldselection_test

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"karmada.io/karmada/internal/domain/fieldselection"
)

func TestMatches(t *testing.T) {
	pod, event, widget := schema.GroupKind{Kind: "Pod"}, schema.GroupKind{Kind: "Event"}, schema.GroupKind{Group: "example.com", Kind: "Widget"}
	tests := map[string]struct {
		kind             schema.GroupKind
		selector, object string
		want             bool
	}{
		"a name needs no object":                    {pod, "metadata.name=a", "", true},
		"another name":                              {pod, "metadata.name=b", "", false},
		"a namespace":                               {pod, "metadata.namespace!=default", "", true},
		"the phase of a Pod":                        {pod, "status.phase=Running", `{"status":{"phase":"Running"}}`, true},
		"all requirements must match":               {pod, "metadata.name=a,status.phase!=Running", `{"status":{"phase":"Running"}}`, false},
		"a missing field is empty":                  {pod, "spec.nodeName=", `{}`, true},
		"a missing flag is false":                   {pod, "spec.hostNetwork=false", `{"spec":{}}`, true},
		"a flag":                                    {pod, "spec.hostNetwork=true", `{"spec":{"hostNetwork":true}}`, true},
		"a number":                                  {schema.GroupKind{Group: "batch", Kind: "Job"}, "status.successful=3", `{"status":{"succeeded":3}}`, true},
		"the source of a new Event":                 {event, "source=kubelet", `{"source":{},"reportingController":"kubelet"}`, true},
		"the object of an Event":                    {event, "involvedObject.kind=Pod", `{"involvedObject":{"kind":"Pod"}}`, true},
		"a custom kind has the paths of its values": {widget, ".spec.color=blue", `{"spec":{"color":"blue"}}`, true},
		"a value with escapes":                      {widget, "spec.color=a\"b", `{"spec":{"color":"a\"b"}}`, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			parsed, err := fields.ParseSelector(test.selector)
			if err != nil {
				t.Fatal(err)
			}
			selector, err := fieldselection.New(test.kind, parsed)
			if err != nil {
				t.Fatal(err)
			}
			got, err := selector.Matches("ns", "a", func() ([]byte, error) {
				if test.object == "" {
					return nil, errors.New("the object is read")
				}
				return []byte(test.object), nil
			})
			if err != nil || got != test.want {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

func TestUnknownFieldsAreErrors(t *testing.T) {
	for _, kind := range []schema.GroupKind{{Kind: "Pod"}, {Kind: "ConfigMap"}, {Group: "apps", Kind: "Deployment"}, {Group: "networking.k8s.io", Kind: "Ingress"}} {
		if _, err := fieldselection.New(kind, fields.OneTermEqualSelector("spec.color", "blue")); err == nil {
			t.Errorf("%s accepts spec.color", kind)
		}
	}
	if _, err := fieldselection.New(schema.GroupKind{Group: "metrics.k8s.io", Kind: "PodMetrics"}, fields.OneTermEqualSelector("window", "1m")); err != nil {
		t.Errorf("a kind of another API server: %v", err)
	}
}

func TestName(t *testing.T) {
	for text, want := range map[string]string{"metadata.name=a": "a", "metadata.name!=a": "", "": "", "status.phase=x,metadata.name==b": "b"} {
		parsed, err := fields.ParseSelector(text)
		if err != nil {
			t.Fatal(err)
		}
		selector, err := fieldselection.New(schema.GroupKind{Kind: "Pod"}, parsed)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := selector.Name(); got != want || ok != (want != "") {
			t.Errorf("%q: got %q, %v", text, got, ok)
		}
		if selector.IsEmpty() != (text == "") {
			t.Errorf("%q: empty is %v", text, selector.IsEmpty())
		}
	}
}

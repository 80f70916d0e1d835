package kubectl

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/cli-runtime/pkg/resource"
)

func TestDropNotFoundErrors(t *testing.T) {
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	has := func(names ...string) (infos []*resource.Info) {
		for _, name := range names {
			infos = append(infos, &resource.Info{Mapping: &meta.RESTMapping{Resource: deployments}, Namespace: "shop", Name: name})
		}
		return infos
	}
	lacks := func(name string) error { return apierrors.NewNotFound(deployments.GroupResource(), name) }
	noNamespace := apierrors.NewNotFound(corev1.Resource("namespaces"), "shop")
	otherGroup := apierrors.NewNotFound(schema.GroupResource{Group: "other.io", Resource: "deployments"}, "web")
	noType := errors.New(`the server doesn't have a resource type "ships"`)
	unreachable := errors.New("no connection")

	tests := map[string]struct {
		results []targetResult
		want    []string
	}{
		"the first target has it":                   {[]targetResult{{infos: has("web")}, {err: lacks("web")}}, []string{"", ""}},
		"the last target has it":                    {[]targetResult{{err: lacks("web")}, {infos: has("web")}}, []string{"", ""}},
		"no target has it":                          {[]targetResult{{err: lacks("web")}, {err: lacks("web")}}, []string{lacks("web").Error(), lacks("web").Error()}},
		"a target without the namespace":            {[]targetResult{{infos: has("web")}, {err: noNamespace}}, []string{"", ""}},
		"no target has the namespace":               {[]targetResult{{err: noNamespace}, {err: noNamespace}}, []string{noNamespace.Error(), noNamespace.Error()}},
		"another error stays":                       {[]targetResult{{infos: has("web")}, {err: unreachable}}, []string{"", unreachable.Error()}},
		"no target has it and one is unreachable":   {[]targetResult{{err: lacks("web")}, {err: unreachable}}, []string{lacks("web").Error(), unreachable.Error()}},
		"the same name in another group":            {[]targetResult{{infos: has("web")}, {err: otherGroup}}, []string{"", otherGroup.Error()}},
		"a type that one target serves":             {[]targetResult{{}, {err: noType}}, []string{"", ""}},
		"a type that no target serves":              {[]targetResult{{err: noType}, {err: noType}}, []string{noType.Error(), noType.Error()}},
		"an unknown type and an unreachable target": {[]targetResult{{err: unreachable}, {err: noType}}, []string{unreachable.Error(), noType.Error()}},
		"one of two names, with a wrapped error": {
			[]targetResult{{infos: has("web")}, {err: utilerrors.NewAggregate([]error{fmt.Errorf("reading: %w", lacks("web")), lacks("db")})}},
			[]string{"", lacks("db").Error()},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dropNotFoundErrors(test.results)
			var got []string
			for _, a := range test.results {
				text := ""
				if a.err != nil {
					text = a.err.Error()
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

package get

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

func TestOnlyWhatNoPlaceHasIsAbsent(t *testing.T) {
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
	down := errors.New("no connection")

	tests := map[string]struct {
		answers []answer
		want    []string
	}{
		"one place has it":                      {[]answer{{infos: has("web")}, {err: lacks("web")}}, []string{"", ""}},
		"the last place has it":                 {[]answer{{err: lacks("web")}, {infos: has("web")}}, []string{"", ""}},
		"no place has it":                       {[]answer{{err: lacks("web")}, {err: lacks("web")}}, []string{lacks("web").Error(), lacks("web").Error()}},
		"a place without the namespace":         {[]answer{{infos: has("web")}, {err: noNamespace}}, []string{"", ""}},
		"no place has the namespace":            {[]answer{{err: noNamespace}, {err: noNamespace}}, []string{noNamespace.Error(), noNamespace.Error()}},
		"a place that was not asked":            {[]answer{{infos: has("web")}, {err: down}}, []string{"", down.Error()}},
		"no place has it and one was not asked": {[]answer{{err: lacks("web")}, {err: down}}, []string{lacks("web").Error(), down.Error()}},
		"the same name in another group":        {[]answer{{infos: has("web")}, {err: otherGroup}}, []string{"", otherGroup.Error()}},
		"a type that one place serves":          {[]answer{{}, {err: noType}}, []string{"", ""}},
		"a type that no place serves":           {[]answer{{err: noType}, {err: noType}}, []string{noType.Error(), noType.Error()}},
		"a type, where the others do not speak": {[]answer{{err: down}, {err: noType}}, []string{down.Error(), noType.Error()}},
		"one of two names, with other words": {
			[]answer{{infos: has("web")}, {err: utilerrors.NewAggregate([]error{fmt.Errorf("reading: %w", lacks("web")), lacks("db")})}},
			[]string{"", lacks("db").Error()},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dropAbsent(test.answers)
			var got []string
			for _, a := range test.answers {
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

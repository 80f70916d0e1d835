package rendering_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"

	"karmada.io/karmada/internal/install/rendering"
)

const chartDir = "../../../charts/karmada"

// TestLintFindsNothing runs the checks of helm lint for the values of all golden files.
func TestLintFindsNothing(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.values.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatal("no inputs", err)
	}
	for _, input := range inputs {
		t.Run(filepath.Base(input), func(t *testing.T) {
			values := rendering.Merge(rendering.Merge(mirrored(), rendering.Values{"karmadaImageVersion": "v1.2.3"}), readValues(t, input))
			for _, message := range lint.RunAll(chartDir, values, "karmada-system").Messages {
				if message.Severity > support.InfoSev {
					t.Error(message)
				}
			}
		})
	}
}

// renderByHelm returns the files that the command helm template renders from the directory of the chart.
func renderByHelm(release string, values rendering.Values) (map[string]string, error) {
	return renderInHost(release, values)
}

// renderInHost renders the chart for a host that has the given objects.
func renderInHost(release string, values rendering.Values, installed ...runtime.Object) (map[string]string, error) {
	loaded, err := loader.Load(chartDir)
	if err != nil {
		return nil, err
	}
	options := common.ReleaseOptions{Name: release, Namespace: "karmada-system", Revision: 1, IsInstall: true}
	values = rendering.Merge(rendering.Merge(mirrored(), rendering.Values{"karmadaImageVersion": "v1.2.3"}), values)
	complete, err := util.ToRenderValues(loaded, values, options, nil)
	if err != nil {
		return nil, err
	}
	return engine.RenderWithClientProvider(loaded, complete, hostObjects{dynamicfake.NewSimpleDynamicClient(scheme.Scheme, installed...)})
}

// hostObjects gives the templates access to a host's objects.
type hostObjects struct{ api dynamic.Interface }

func (h hostObjects) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	resource, _ := meta.UnsafeGuessKindToResource(schema.FromAPIVersionAndKind(apiVersion, kind))
	return h.api.Resource(resource), true, nil
}

func TestNumberOfEtcdMembersCannotChange(t *testing.T) {
	installed := func(members int) runtime.Object {
		names := make([]string, members)
		for i := range names {
			names[i] = fmt.Sprintf("etcd-%d=https://etcd-%d.etcd:2380", i, i)
		}
		stored := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: "etcd"}}
		// A restore scales etcd to 0.
		stored.Spec.Replicas = ptr.To[int32](0)
		stored.Spec.Template.Spec.Containers = []corev1.Container{{Name: "etcd", Command: []string{"etcd", "--initial-cluster=" + strings.Join(names, ",")}}}
		return stored
	}
	replicas := func(count int) rendering.Values {
		return rendering.Values{"etcd": rendering.Values{"internal": rendering.Values{"replicaCount": count, "storageType": "pvc"}}}
	}
	tests := map[string]struct {
		installed []runtime.Object
		values    rendering.Values
		want      string
	}{
		"a new installation":       {nil, replicas(3), ""},
		"the same number":          {[]runtime.Object{installed(3)}, replicas(3), ""},
		"one member becomes three": {[]runtime.Object{installed(1)}, replicas(3), "etcd.internal.replicaCount is 3, and the installed etcd has 1: new members could form an empty cluster"},
		"three members become one": {[]runtime.Object{installed(3)}, replicas(1), "etcd.internal.replicaCount is 1, and the installed etcd has 3"},
		"an external etcd": {
			[]runtime.Object{installed(1)}, rendering.Values{"etcd": rendering.Values{"mode": "external", "external": rendering.Values{
				"servers": "https://etcd", "certs": rendering.Values{"caCrt": "a", "crt": "b", "key": "c"},
			}}}, "",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := renderInHost("karmada", test.values, test.installed...)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// TestNotesNameEverythingAUserNeeds renders the text that Helm prints after an installation.
func TestNotesNameEverythingAUserNeeds(t *testing.T) {
	tests := map[string]struct {
		values rendering.Values
		want   []string
		absent string
	}{
		"a control plane": {
			nil, []string{"-l app=karmada-setup", "karmada-kubeconfig \\\n", "{.data.kubeconfig}", "WARNING: etcd's data is in /var/lib/karmada-etcd", "need the value apiServer.externalURL"}, "no effect",
		},
		"a control plane that clusters outside the host reach": {
			rendering.Values{"apiServer": rendering.Values{"externalURL": "https://k.example.com"}}, []string{"token create"}, "need the value",
		},
		"etcd on chosen nodes": {
			rendering.Values{"etcd": rendering.Values{"internal": rendering.Values{"nodeSelector": rendering.Values{"disk": "ssd"}}}}, nil, "WARNING",
		},
		"values of other releases of the chart": {
			rendering.Values{"cfssl": rendering.Values{"image": rendering.Values{"tag": "v1.6.5"}}, "postInstallJob": rendering.Values{"hookDeletePolicy": "hook-succeeded"}},
			[]string{"These values have no effect in this version of the chart: cfssl, postInstallJob."}, "",
		},
		"an estimator without members": {
			rendering.Values{"installMode": "component", "components": []any{"schedulerEstimator"}}, []string{"schedulerEstimator.memberClusters is empty"}, "",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			rendered, err := renderByHelm("karmada", test.values)
			if err != nil {
				t.Fatal(err)
			}
			got := rendered["karmada/templates/NOTES.txt"]
			for _, want := range test.want {
				if !strings.Contains(got, want) {
					t.Errorf("the notes lack %q:\n%s", want, got)
				}
			}
			if test.absent != "" && strings.Contains(got, test.absent) {
				t.Errorf("the notes contain %q:\n%s", test.absent, got)
			}
		})
	}
}

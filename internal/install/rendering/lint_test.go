package rendering_test

import (
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"

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
			values := rendering.Merge(rendering.Values{"karmadaImageVersion": "v1.2.3"}, readValues(t, input))
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
	loaded, err := loader.Load(chartDir)
	if err != nil {
		return nil, err
	}
	options := common.ReleaseOptions{Name: release, Namespace: "karmada-system", Revision: 1, IsInstall: true}
	values = rendering.Merge(rendering.Values{"karmadaImageVersion": "v1.2.3"}, values)
	complete, err := util.ToRenderValues(loaded, values, options, nil)
	if err != nil {
		return nil, err
	}
	return engine.Render(loaded, complete)
}

// TestNotesNameEverythingAUserNeeds renders the text that Helm prints after an installation.
func TestNotesNameEverythingAUserNeeds(t *testing.T) {
	tests := map[string]struct {
		values rendering.Values
		want   []string
		absent string
	}{
		"a control plane": {
			nil, []string{"-l app=karmada-setup", "karmada-kubeconfig \\\n", "{.data.kubeconfig}", "WARNING: the data of etcd is in /var/lib/karmada-etcd", "need the value apiServer.externalURL"}, "no effect",
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

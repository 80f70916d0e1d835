package aggregated_test

import (
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/component-base/featuregate"

	"karmada.io/karmada/internal/testenv/testetcd"
)

func TestResourceModelingFeatureGate(t *testing.T) {
	const modeling = "CustomizedClusterResourceModeling"
	storage := testetcd.Start(t)
	tests := map[string]struct {
		prefix string
		flag   string
		gates  func() featuregate.MutableFeatureGate
		want   int
	}{
		"disabled by the flag": {prefix: "/flag", flag: modeling + "=false"},
		"disabled by the flag in the given gates": {prefix: "/given", flag: modeling + "=false", gates: func() featuregate.MutableFeatureGate {
			gates := featuregate.NewFeatureGate()
			if err := gates.Add(map[featuregate.Feature]featuregate.FeatureSpec{modeling: {Default: true, PreRelease: featuregate.Beta}}); err != nil {
				t.Fatal(err)
			}
			return gates
		}},
		"enabled by default": {prefix: "/default", want: 9},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := newOptions(t, storage)
			o.Server.Etcd.StorageConfig.Prefix = test.prefix
			if test.gates != nil {
				o.Gates = test.gates()
			}
			flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
			o.AddFlags(flags)
			if err := flags.Set("feature-gates", test.flag); err != nil {
				t.Fatal(err)
			}
			got := createCluster(t, newClient(t, startServer(t, o)), newMemberCluster("m1"))
			if len(got.Spec.ResourceModels) != test.want {
				t.Errorf("%d models, want %d", len(got.Spec.ResourceModels), test.want)
			}
			if o.Gates != nil && o.Gates.Enabled(modeling) {
				t.Error("the flag does not change the given gates")
			}
		})
	}
}

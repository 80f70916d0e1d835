package cluster_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/cluster"
)

func pushCluster() *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "member1"},
		Spec:       clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push},
	}
}

func TestValidate(t *testing.T) {
	taint := func(key, value string, effect corev1.TaintEffect) corev1.Taint {
		return corev1.Taint{Key: key, Value: value, Effect: effect}
	}
	tests := map[string]struct {
		change func(*clusterv1alpha1.Cluster)
		// want are the rejected fields, in order.
		want []string
	}{
		"a minimal push cluster is accepted": {change: func(*clusterv1alpha1.Cluster) {}},
		"a pull cluster with every field is accepted": {change: func(c *clusterv1alpha1.Cluster) {
			ref := &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: "member1"}
			c.Name = strings.Repeat("a", 48)
			c.Spec = clusterv1alpha1.ClusterSpec{
				ID: "id", SyncMode: clusterv1alpha1.Pull, APIEndpoint: "https://10.0.0.1:6443/base",
				SecretRef: ref, ImpersonatorSecretRef: ref, ProxyURL: "socks5://proxy:1080",
				Provider: "p", Region: "r", Zones: []string{"z1", "z2"},
				Taints: []corev1.Taint{
					taint("example.com/a", "v", corev1.TaintEffectNoSchedule),
					taint("example.com/a", "v", corev1.TaintEffectNoExecute),
				},
				ResourceModels: cluster.DefaultModels(),
			}
		}},
		"a missing name": {
			change: func(c *clusterv1alpha1.Cluster) { c.Name = "" },
			want:   []string{"metadata.name"},
		},
		"a name of 49 characters is too long": {
			change: func(c *clusterv1alpha1.Cluster) { c.Name = strings.Repeat("a", 49) },
			want:   []string{"metadata.name"},
		},
		"a name that is not a DNS label": {
			change: func(c *clusterv1alpha1.Cluster) { c.Name = "member.one" },
			want:   []string{"metadata.name"},
		},
		"a missing sync mode": {
			change: func(c *clusterv1alpha1.Cluster) { c.Spec.SyncMode = "" },
			want:   []string{"spec.syncMode"},
		},
		"the sync mode is Push or Pull": {
			change: func(c *clusterv1alpha1.Cluster) { c.Spec.SyncMode = "push" },
			want:   []string{"spec.syncMode"},
		},
		"an endpoint without host": {
			change: func(c *clusterv1alpha1.Cluster) { c.Spec.APIEndpoint = "https:///path" },
			want:   []string{"spec.apiEndpoint"},
		},
		"an endpoint that is not a URL": {
			change: func(c *clusterv1alpha1.Cluster) { c.Spec.APIEndpoint = "10.0.0.1:6443" },
			want:   []string{"spec.apiEndpoint"},
		},
		"an endpoint has no user, query or fragment": {
			change: func(c *clusterv1alpha1.Cluster) { c.Spec.APIEndpoint = "https://u:p@h/?q=1#f" },
			want:   []string{"spec.apiEndpoint", "spec.apiEndpoint", "spec.apiEndpoint"},
		},
		"the scheme of an endpoint is free": {
			change: func(c *clusterv1alpha1.Cluster) { c.Spec.APIEndpoint = "tcp://h" },
		},
		"a secret reference has namespace and name": {
			change: func(c *clusterv1alpha1.Cluster) {
				c.Spec.SecretRef = &clusterv1alpha1.LocalSecretReference{Name: "n"}
				c.Spec.ImpersonatorSecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: "ns"}
			},
			want: []string{"spec.secretRef.namespace", "spec.impersonatorSecretRef.name"},
		},
		"a proxy with another scheme": {
			change: func(c *clusterv1alpha1.Cluster) { c.Spec.ProxyURL = "ftp://proxy" },
			want:   []string{"spec.proxyURL"},
		},
		"a proxy that is not a URL": {
			change: func(c *clusterv1alpha1.Cluster) { c.Spec.ProxyURL = "http://[::1" },
			want:   []string{"spec.proxyURL"},
		},
		"provider, region, zone and zones are label values": {
			change: func(c *clusterv1alpha1.Cluster) {
				c.Spec.Provider, c.Spec.Region, c.Spec.Zone = "a b", "-", "z/1"
			},
			want: []string{"spec.provider", "spec.region", "spec.zone"},
		},
		"each of the zones is a label value": {
			change: func(c *clusterv1alpha1.Cluster) { c.Spec.Zones = []string{"ok", "not ok"} },
			want:   []string{"spec.zones[1]"},
		},
		"zone and zones exclude each other": {
			change: func(c *clusterv1alpha1.Cluster) { c.Spec.Zone, c.Spec.Zones = "a", []string{"b"} },
			want:   []string{"spec.zone"},
		},
		"a taint has a valid key and value": {
			change: func(c *clusterv1alpha1.Cluster) {
				c.Spec.Taints = []corev1.Taint{taint("a b", "c d", corev1.TaintEffectNoSchedule)}
			},
			want: []string{"spec.taints[0].key", "spec.taints[0].value"},
		},
		"PreferNoSchedule is not supported for clusters": {
			change: func(c *clusterv1alpha1.Cluster) {
				c.Spec.Taints = []corev1.Taint{taint("a", "", corev1.TaintEffectPreferNoSchedule)}
			},
			want: []string{"spec.taints[0].effect"},
		},
		"a taint has an effect": {
			change: func(c *clusterv1alpha1.Cluster) { c.Spec.Taints = []corev1.Taint{taint("a", "", "")} },
			want:   []string{"spec.taints[0].effect"},
		},
		"key and effect of a taint are unique whatever the value": {
			change: func(c *clusterv1alpha1.Cluster) {
				c.Spec.Taints = []corev1.Taint{
					taint("a", "1", corev1.TaintEffectNoSchedule), taint("a", "2", corev1.TaintEffectNoSchedule),
				}
			},
			want: []string{"spec.taints[1]"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := pushCluster()
			test.change(c)
			if diff := cmp.Diff(test.want, rejectedFields(c)); diff != "" {
				t.Errorf("rejected fields (-want +got):\n%s\n%v", diff, cluster.Validate(c))
			}
		})
	}
}

func TestValidateModels(t *testing.T) {
	tests := map[string]struct {
		models []clusterv1alpha1.ResourceModel
		want   []string
	}{
		"contiguous models from nothing to everything are accepted": {
			models: []clusterv1alpha1.ResourceModel{model(0, "cpu", "0", "1"), model(1, "cpu", "1000m", unbounded)},
		},
		"neighbouring grades differ": {
			models: []clusterv1alpha1.ResourceModel{model(0, "cpu", "0", "1"), model(0, "cpu", "1", unbounded)},
			want:   []string{"spec.resourceModels[1].grade"},
		},
		"all grades have the same number of resources": {
			models: []clusterv1alpha1.ResourceModel{model(0, "cpu", "0", "1"), model(1, "cpu", "1", unbounded, "memory", "0", unbounded)},
			want:   []string{"spec.resourceModels[1].ranges"},
		},
		"all grades have the same resources in the same order": {
			models: []clusterv1alpha1.ResourceModel{
				model(0, "cpu", "0", "1", "memory", "0", "1"),
				model(1, "memory", "1", unbounded, "cpu", "1", unbounded),
			},
			want: []string{"spec.resourceModels[1].ranges[0].name", "spec.resourceModels[1].ranges[1].name"},
		},
		"max is larger than min": {
			models: []clusterv1alpha1.ResourceModel{model(0, "cpu", "0", "1"), model(1, "cpu", "1", "1"), model(2, "cpu", "1", unbounded)},
			want:   []string{"spec.resourceModels[1].ranges[0]"},
		},
		"the lowest grade starts at 0": {
			models: []clusterv1alpha1.ResourceModel{model(0, "cpu", "1", unbounded)},
			want:   []string{"spec.resourceModels[0].ranges[0].min"},
		},
		"there is no gap between grades": {
			models: []clusterv1alpha1.ResourceModel{model(0, "cpu", "0", "1"), model(1, "cpu", "2", unbounded)},
			want:   []string{"spec.resourceModels[1].ranges[0].min"},
		},
		"the highest grade is open": {
			models: []clusterv1alpha1.ResourceModel{model(0, "cpu", "0", "9223372036854775806")},
			want:   []string{"spec.resourceModels[0].ranges[0].max"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := pushCluster()
			c.Spec.ResourceModels = test.models
			if diff := cmp.Diff(test.want, rejectedFields(c)); diff != "" {
				t.Errorf("rejected fields (-want +got):\n%s\n%v", diff, cluster.Validate(c))
			}
		})
	}
}

func TestValidateUpdate(t *testing.T) {
	broken := pushCluster()
	broken.Spec.SyncMode = ""
	if errs := cluster.ValidateUpdate(pushCluster(), broken); len(errs) != 0 {
		t.Errorf("repairing a cluster is rejected: %v", errs)
	}
	if errs := cluster.ValidateUpdate(broken, pushCluster()); len(errs) != 1 {
		t.Errorf("breaking a cluster: got %v, want one error", errs)
	}
}

func rejectedFields(c *clusterv1alpha1.Cluster) []string {
	var fields []string
	for _, err := range cluster.Validate(c) {
		fields = append(fields, err.Field)
	}
	return fields
}

func FuzzValidate(f *testing.F) {
	f.Add("member1", "https://h:6443", "http://proxy", "key")
	f.Add("", "%zz", "://", "a/b/c")
	f.Fuzz(func(t *testing.T, name, endpoint, proxy, key string) {
		c := pushCluster()
		c.Name, c.Spec.APIEndpoint, c.Spec.ProxyURL = name, endpoint, proxy
		c.Spec.Taints = []corev1.Taint{{Key: key, Effect: corev1.TaintEffectNoExecute}}
		if len(cluster.Validate(c)) != 0 {
			return
		}
		if len(name) == 0 || len(name) > 48 || strings.ContainsAny(endpoint, "?#") {
			t.Errorf("accepted name %q, endpoint %q", name, endpoint)
		}
	})
}

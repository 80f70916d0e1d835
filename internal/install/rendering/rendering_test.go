package rendering_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"karmada.io/karmada/internal/install/rendering"
)

var update = flag.Bool("update", false, "write the golden files")

// TestRenderingMatchesGoldenFiles compares the rendered objects with files in testdata. After an
// intended change, run the test with -update and review the difference.
func TestRenderingMatchesGoldenFiles(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.values.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatal("no inputs", err)
	}
	for _, input := range inputs {
		name := strings.TrimSuffix(filepath.Base(input), ".values.yaml")
		t.Run(name, func(t *testing.T) {
			installation := rendering.Installation{Release: "karmada", Namespace: "karmada-system", Version: "v1.2.3", Values: rendering.Merge(mirrored(), readValues(t, input))}
			host, err := installation.Host()
			if err != nil {
				t.Fatal(err)
			}
			checkGolden(t, filepath.Join("testdata", name+".golden.yaml"), host)
		})
	}
	t.Run("control plane", func(t *testing.T) {
		objects, err := rendering.Installation{Release: "karmada", Namespace: "karmada-system"}.ControlPlane(rendering.ControlPlane{
			Server: "https://karmada.example.com:5443", CA: []byte("ca"), Webhook: "https://webhook.example.com",
			APIServers: map[string]rendering.Address{
				"karmada-aggregated-apiserver": {Host: "api.example.com", Port: 8443}, "karmada-search": {Host: "search.example.com", Port: 443},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		checkGolden(t, "testdata/control-plane.golden.yaml", objects)
	})
}

func readValues(t *testing.T, file string) rendering.Values {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	values := rendering.Values{}
	if err := yaml.Unmarshal(data, &values); err != nil {
		t.Fatal(err)
	}
	return values
}

func checkGolden(t *testing.T, file string, objects []*unstructured.Unstructured) {
	t.Helper()
	var got strings.Builder
	for _, object := range objects {
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		got.WriteString("---\n" + string(text))
	}
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("run the test with -update if this is intended (-want +got):\n%s", diff)
	}
}

func TestInvalidValuesAreReported(t *testing.T) {
	tests := map[string]struct {
		values rendering.Values
		want   string
	}{
		"a key that does not exist": {rendering.Values{"schedular": rendering.Values{}}, "schedular"},
		"a wrong type":              {rendering.Values{"scheduler": rendering.Values{"replicaCount": "two"}}, "/scheduler/replicaCount"},
		"two members of etcd":       {rendering.Values{"etcd": rendering.Values{"internal": rendering.Values{"replicaCount": 2}}}, "/etcd/internal/replicaCount"},
		"an argument without dashes": {
			rendering.Values{"webhook": rendering.Values{"extraArgs": []any{"v=5"}}}, "/webhook/extraArgs/0",
		},
		"custom certificates that are missing": {
			rendering.Values{"certs": rendering.Values{"mode": "custom"}}, "certs.custom.caCrt is missing: certs.mode is custom",
		},
		"a volume that is smaller than the quota of etcd": {
			etcdVolume("8G"), "etcd.internal.pvc.size is 8G (8000000000 bytes), and etcd may use 8589934592 bytes",
		},
		"a volume that is smaller than the quota in the arguments of etcd": {
			etcdVolume("10Gi", "--quota-backend-bytes=10737418241"), "etcd.internal.pvc.size is 10Gi (10737418240 bytes), and etcd may use 10737418241 bytes",
		},
		"a volume that is smaller than the default quota of etcd itself": {
			etcdVolume("1.5Gi", "--quota-backend-bytes=0"), "(1610612736 bytes), and etcd may use 2147483648 bytes",
		},
		"a volume that is as large as the quota of etcd": {
			etcdVolume("8Gi"), "etcd may use 8589934592 bytes for data (--quota-backend-bytes) and needs 1Gi for its log: it would fill the volume and stop. Set etcd.internal.pvc.size (karmadactl init: --etcd-pvc-size) to at least 9Gi,",
		},
		"etcd without a quota": {
			etcdVolume("5Gi", "--quota-backend-bytes=-1"), "etcd.internal.extraArgs contains --quota-backend-bytes=-1: with a volume, the quota must be a decimal number of bytes",
		},
		"a quota in another notation": {etcdVolume("5Gi", "--quota-backend-bytes=0x280000000"), "must be a decimal number of bytes"},
		"a quota without a value":     {etcdVolume("5Gi", "--quota-backend-bytes"), "must be a decimal number of bytes"},
		"two quotas": {
			etcdVolume("5Gi", "--quota-backend-bytes=8589934592", "--quota-backend-bytes=1073741824"), "etcd.internal.extraArgs contains --quota-backend-bytes twice",
		},
		"a size that is no quantity": {etcdVolume("10GB"), `"10GB" is not a size: use a quantity such as 10Gi`},
		"an external etcd without servers": {
			rendering.Values{"etcd": rendering.Values{"mode": "external"}}, "etcd.external.servers is missing: set it to the URLs of the external etcd",
		},
		"a component that is not built": {
			rendering.Values{"installMode": "component", "components": []any{"metricsAdapter"}}, "components: metricsAdapter is not part of this version of Karmada",
		},
		"no components":                      {rendering.Values{"installMode": "component"}, "components is empty: with installMode component, list at least one"},
		"a label with a number":              {rendering.Values{"scheduler": rendering.Values{"podLabels": rendering.Values{"version": 1.10}}}, "/scheduler/podLabels/version"},
		"a label that an API server refuses": {rendering.Values{"global": rendering.Values{"commonLabels": rendering.Values{"team": "a b"}}}, "/global/commonLabels/team"},
		"a tag with a number":                {rendering.Values{"karmadaImageVersion": 1.10}, "/karmadaImageVersion"},
		"policies for a Pod in the network of its node": {
			rendering.Values{"apiServer": rendering.Values{"hostNetwork": true}, "networkPolicies": rendering.Values{"enabled": true}}, "networkPolicies.enabled: a NetworkPolicy cannot select",
		},
		"an estimator without kubeconfig": {
			rendering.Values{"schedulerEstimator": rendering.Values{"memberClusters": []any{rendering.Values{"clusterName": "m"}}}}, "/schedulerEstimator/memberClusters/0",
		},
		"an agent without a cluster": {rendering.Values{"installMode": "agent"}, "agent.clusterName: the name of this cluster is missing"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := rendering.Installation{Release: "karmada", Namespace: "karmada-system", Version: "v1.2.3", Values: rendering.Merge(mirrored(), test.values)}.Host()
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// etcdVolume returns values with the size of the volume of etcd and its further arguments.
func etcdVolume(size string, arguments ...any) rendering.Values {
	return rendering.Values{"etcd": rendering.Values{"internal": rendering.Values{
		"storageType": "pvc", "pvc": rendering.Values{"size": size}, "extraArgs": arguments,
	}}}
}

func TestVolumeOfEtcdHoldsItsQuota(t *testing.T) {
	for _, values := range []rendering.Values{
		etcdVolume("9Gi"), etcdVolume("9216Mi"), etcdVolume("1e10"), etcdVolume("10000000000"), etcdVolume("1Ti"),
		etcdVolume("5Gi", "--quota-backend-bytes=4294967296"), etcdVolume("3Gi", "--quota-backend-bytes=0"),
	} {
		if _, err := (rendering.Installation{Release: "karmada", Namespace: "karmada-system", Version: "v1.2.3", Values: rendering.Merge(mirrored(), values)}).Host(); err != nil {
			t.Errorf("%v: %v", values, err)
		}
	}
}

// mirrored returns values with the registry to which the image was mirrored.
func mirrored() rendering.Values {
	return rendering.Values{"componentDefaults": rendering.Values{"image": rendering.Values{"registry": "registry.example.com"}}}
}

func TestImageNeedsRegistry(t *testing.T) {
	tests := map[string]struct {
		values rendering.Values
		image  string
	}{
		"no registry":         {},
		"a mirror":            {values: mirrored(), image: "registry.example.com/karmada/karmada:v1.2.3"},
		"a mirror for all":    {values: rendering.Values{"global": rendering.Values{"imageRegistry": "mirror"}}, image: "mirror/karmada/karmada:v1.2.3"},
		"a repository alone":  {values: rendering.Values{"componentDefaults": rendering.Values{"image": rendering.Values{"repository": "mirror/all"}}}, image: "mirror/all:v1.2.3"},
		"a single own image":  {values: rendering.Values{"scheduler": rendering.Values{"image": rendering.Values{"registry": "mirror"}}}},
		"an empty repository": {values: rendering.Values{"scheduler": rendering.Values{"image": rendering.Values{"repository": "karmada/karmada"}}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			objects, err := rendering.Installation{Release: "karmada", Namespace: "karmada-system", Version: "v1.2.3", Values: test.values}.Host()
			if test.image == "" {
				if err == nil || !strings.Contains(err.Error(), "no registry of the image is configured, and there is no public image: build the image") {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, object := range objects {
				containers, found, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
				if err != nil || found && containers[0].(map[string]any)["image"] != test.image {
					t.Errorf("%s %s: %v, %v", object.GetKind(), object.GetName(), containers, err)
				}
			}
		})
	}
}

// TestNamesOfImagesAreValid requires that the chart and the commands accept the same images.
func TestNamesOfImagesAreValid(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0a", 32)
	for _, test := range []struct {
		registry, repository, tag string
		isValid                   bool
	}{
		{"registry.example.com", "karmada/karmada", "v1.2.3", true},
		{"registry.example.com:5000/a/b_c.d--e", "karmada", "V1_a.b-c", true},
		{"localhost/karmada", "karmada", digest, true},
		{"", "mirror/all", "v1@" + digest, true},
		{"https://registry.example.com", "karmada", "v1", false},
		{"UPPER/x", "karmada", "v1", false},
		{"registry.example.com/UPPER", "karmada", "v1", false},
		{"registry.example.com//a", "karmada", "v1", false},
		{"registry.example.com:port", "karmada", "v1", false},
		{"registry.example.com", "karmada/", "v1", false},
		{"registry.example.com", "karmada:v1", "v1", false},
		{"registry.example.com", "karmada", "sha256:abc", false},
	} {
		name := strings.TrimPrefix(test.registry+"/"+test.repository, "/")
		if strings.HasPrefix(test.tag, "sha256:") {
			name += "@" + test.tag
		} else {
			name += ":" + test.tag
		}
		image := rendering.Values{"registry": test.registry, "repository": test.repository, "tag": test.tag}
		_, err := rendering.Installation{
			Release: "karmada", Namespace: "karmada-system", Version: "v1.2.3",
			Values: rendering.Merge(mirrored(), rendering.Values{"scheduler": rendering.Values{"image": image}}),
		}.Host()
		if (err == nil) != test.isValid || err != nil && !strings.Contains(err.Error(), name+`" of an image is not valid`) {
			t.Errorf("the chart, %s: %v", name, err)
		}
		if err := rendering.ValidateImage(name); (err == nil) != test.isValid {
			t.Errorf("the commands, %s: %v", name, err)
		}
	}
	for registry, isValid := range map[string]bool{"registry.example.com": true, "a/b": true, "https://a": false, "a/": false, "a@b": false, "A/b": false} {
		if err := rendering.ValidateRegistry(registry); (err == nil) != isValid {
			t.Errorf("the registry %s: %v", registry, err)
		}
	}
}

func TestVersionWithBuildMetadataIsTag(t *testing.T) {
	objects, err := rendering.Installation{Release: "karmada", Namespace: "karmada-system", Version: "v1.2.3+dirty", Values: mirrored()}.Host()
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
		for _, container := range containers {
			if got := container.(map[string]any)["image"]; got != "registry.example.com/karmada/karmada:v1.2.3_dirty" {
				t.Errorf("%s %s: image %v", object.GetKind(), object.GetName(), got)
			}
		}
	}
}

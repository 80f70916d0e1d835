package builtin

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	"karmada.io/karmada/internal/domain/interpreter"
)

func TestPodDependencies(t *testing.T) {
	volume := func(source string) string { return `{volumes: [{name: v, ` + source + `}]}` }
	tests := map[string]struct {
		spec string
		want []string
	}{
		"an empty template":            {spec: `{containers: [{}]}`},
		"environment variables":        {spec: `{containers: [{env: [{valueFrom: {configMapKeyRef: {name: c}}}, {valueFrom: {secretKeyRef: {name: s}}}, {value: x}, {valueFrom: {fieldRef: {fieldPath: f}}}]}]}`, want: []string{"ConfigMap/c", "Secret/s"}},
		"whole environments":           {spec: `{containers: [{envFrom: [{configMapRef: {name: c}}, {secretRef: {name: s}}]}]}`, want: []string{"ConfigMap/c", "Secret/s"}},
		"containers of all kinds":      {spec: `{containers: [{envFrom: [{secretRef: {name: a}}]}], initContainers: [{envFrom: [{secretRef: {name: b}}]}], ephemeralContainers: [{name: e, envFrom: [{secretRef: {name: c}}]}]}`, want: []string{"Secret/a", "Secret/b", "Secret/c"}},
		"ConfigMap volumes":            {spec: volume(`configMap: {name: x}`), want: []string{"ConfigMap/x"}},
		"Secret volumes":               {spec: volume(`secret: {secretName: x}`), want: []string{"Secret/x"}},
		"projected volumes":            {spec: volume(`projected: {sources: [{configMap: {name: c}}, {secret: {name: s}}, {serviceAccountToken: {path: p}}]}`), want: []string{"ConfigMap/c", "Secret/s"}},
		"claims":                       {spec: volume(`persistentVolumeClaim: {claimName: x}`), want: []string{"PersistentVolumeClaim/x"}},
		"azureFile volumes":            {spec: volume(`azureFile: {secretName: x, shareName: share}`), want: []string{"Secret/x"}},
		"cephfs volumes":               {spec: volume(`cephfs: {monitors: [], secretRef: {name: x}}`), want: []string{"Secret/x"}},
		"cinder volumes":               {spec: volume(`cinder: {volumeID: i, secretRef: {name: x}}`), want: []string{"Secret/x"}},
		"flexVolume volumes":           {spec: volume(`flexVolume: {driver: d, secretRef: {name: x}}`), want: []string{"Secret/x"}},
		"rbd volumes":                  {spec: volume(`rbd: {monitors: [], image: i, secretRef: {name: x}}`), want: []string{"Secret/x"}},
		"scaleIO volumes":              {spec: volume(`scaleIO: {gateway: g, system: s, secretRef: {name: x}}`), want: []string{"Secret/x"}},
		"iscsi volumes":                {spec: volume(`iscsi: {targetPortal: p, iqn: q, lun: 1, secretRef: {name: x}}`), want: []string{"Secret/x"}},
		"storageos volumes":            {spec: volume(`storageos: {secretRef: {name: x}}`), want: []string{"Secret/x"}},
		"csi volumes":                  {spec: volume(`csi: {driver: d, nodePublishSecretRef: {name: x}}`), want: []string{"Secret/x"}},
		"volumes without dependencies": {spec: volume(`csi: {driver: d}`)},
		"image pull secrets":           {spec: `{imagePullSecrets: [{name: x}, {name: ""}]}`, want: []string{"Secret/x"}},
		"the service account":          {spec: `{serviceAccountName: robot}`, want: []string{"ServiceAccount/robot"}},
		"no default service account":   {spec: `{serviceAccountName: default}`},
		"unique and sorted by kind and name": {
			spec: `{serviceAccountName: robot, imagePullSecrets: [{name: b}, {name: a}, {name: b}],
				containers: [{envFrom: [{secretRef: {name: a}}, {configMapRef: {name: z}}]}],
				volumes: [{name: v, persistentVolumeClaim: {claimName: p}}, {name: w, configMap: {name: d}}]}`,
			want: []string{"ConfigMap/d", "ConfigMap/z", "PersistentVolumeClaim/p", "Secret/a", "Secret/b", "ServiceAccount/robot"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := PodDependencies(podTemplate(t, test.spec), "shop")
			if diff := cmp.Diff(test.want, coreNames(t, got)); diff != "" {
				t.Errorf("dependencies differ (-want +got):\n%s", diff)
			}
			if err := interpreter.ValidateDependencies(got); err != nil {
				t.Error(err)
			}
		})
	}
}

// coreNames returns the kinds and names of references to objects of the core group in the namespace
// shop.
func coreNames(t *testing.T, references []configv1alpha1.DependentObjectReference) []string {
	t.Helper()
	var names []string
	for _, reference := range references {
		want := configv1alpha1.DependentObjectReference{APIVersion: "v1", Kind: reference.Kind, Namespace: "shop", Name: reference.Name}
		if diff := cmp.Diff(want, reference); diff != "" {
			t.Errorf("reference differs (-want +got):\n%s", diff)
		}
		names = append(names, fmt.Sprintf("%s/%s", reference.Kind, reference.Name))
	}
	return names
}

func TestWorkloadDependencies(t *testing.T) {
	const pod = `spec: {volumes: [{name: v, persistentVolumeClaim: {claimName: data}}, {name: w, secret: {secretName: s}}]}`
	tests := map[string]struct {
		template string
		want     []string
	}{
		"Deployment":  {template: `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop}, spec: {template: {` + pod + `}}}`},
		"ReplicaSet":  {template: `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {namespace: shop}, spec: {template: {` + pod + `}}}`},
		"DaemonSet":   {template: `{apiVersion: apps/v1, kind: DaemonSet, metadata: {namespace: shop}, spec: {template: {` + pod + `}}}`},
		"StatefulSet": {template: `{apiVersion: apps/v1, kind: StatefulSet, metadata: {namespace: shop}, spec: {template: {` + pod + `}}}`},
		"Job":         {template: `{apiVersion: batch/v1, kind: Job, metadata: {namespace: shop}, spec: {template: {` + pod + `}}}`},
		"CronJob":     {template: `{apiVersion: batch/v1, kind: CronJob, metadata: {namespace: shop}, spec: {jobTemplate: {spec: {template: {` + pod + `}}}}}`},
		"Pod":         {template: `{apiVersion: v1, kind: Pod, metadata: {namespace: shop}, ` + pod + `}`},
		"a StatefulSet without the claims of its templates": {
			template: `{apiVersion: apps/v1, kind: StatefulSet, metadata: {namespace: shop}, spec: {template: {` + pod + `},
				volumeClaimTemplates: [{metadata: {name: data}}, {metadata: {name: s}}]}}`,
			want: []string{"Secret/s"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.want == nil {
				test.want = []string{"PersistentVolumeClaim/data", "Secret/s"}
			}
			template := parseObject(t, test.template)
			got, err := rulesFor(template).Dependencies(t.Context(), template)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, coreNames(t, got)); diff != "" {
				t.Errorf("dependencies differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestIngressDependencies(t *testing.T) {
	template := parseObject(t, `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {namespace: shop},
		spec: {tls: [{secretName: b}, {hosts: [no.certificate]}, {secretName: a}, {secretName: b}]}}`)
	got, err := rulesFor(template).Dependencies(t.Context(), template)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"Secret/a", "Secret/b"}; !slices.Equal(want, coreNames(t, got)) {
		t.Errorf("dependencies = %v, want %v", got, want)
	}
}

func TestServiceImportDependencies(t *testing.T) {
	template := parseObject(t, `{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ServiceImport, metadata: {namespace: shop, name: web}}`)
	got, err := rulesFor(template).Dependencies(t.Context(), template)
	if err != nil {
		t.Fatal(err)
	}
	want := []configv1alpha1.DependentObjectReference{
		{APIVersion: "v1", Kind: "Service", Namespace: "shop", Name: "derived-web"},
		{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice", Namespace: "shop", LabelSelector: &metav1.LabelSelector{
			MatchLabels: map[string]string{"kubernetes.io/service-name": "derived-web"},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("dependencies differ (-want +got):\n%s", diff)
	}
}

package install

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/install/rendering"
)

// renderObjects returns the objects of a control plane by kind, namespace and name.
func renderObjects(t *testing.T) map[string]client.Object {
	t.Helper()
	installation := rendering.Installation{Release: "karmada", Namespace: clusterv1alpha1.NamespaceKarmadaSystem}
	namespaces, others, err := ControlPlaneObjects(installation, rendering.ControlPlane{Server: "https://192.0.2.1:5443", CA: []byte("ca")})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]client.Object{}
	for _, object := range append(namespaces, others...) {
		all[object.GetObjectKind().GroupVersionKind().Kind+" "+client.ObjectKeyFromObject(object).String()] = object
	}
	return all
}

func decode[T any](t *testing.T, object client.Object) *T {
	t.Helper()
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	decoded := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}

func TestClusterInfoContainsOnlyServerAndCA(t *testing.T) {
	info := decode[corev1.ConfigMap](t, renderObjects(t)["ConfigMap kube-public/cluster-info"])
	if len(info.Data) != 1 {
		t.Errorf("got %d keys", len(info.Data))
	}
	config, err := clientcmd.Load([]byte(info.Data["kubeconfig"]))
	if err != nil {
		t.Fatal(err)
	}
	if len(config.AuthInfos)+len(config.Contexts) > 0 || len(config.Clusters) != 1 {
		t.Errorf("the kubeconfig contains more than one cluster: %+v", config)
	}
	cluster := config.Clusters[""]
	if cluster == nil || cluster.Server != "https://192.0.2.1:5443" || string(cluster.CertificateAuthorityData) != "ca" {
		t.Errorf("the cluster is %+v", cluster)
	}
}

// TestObjectsHaveNamesThatProgramsUse compares names in the chart with the constants of programs.
func TestObjectsHaveNamesThatProgramsUse(t *testing.T) {
	all := renderObjects(t)
	for _, key := range []string{
		"Namespace /" + clusterv1alpha1.NamespaceKarmadaSystem,
		"Namespace /" + clusterv1alpha1.NamespaceKarmadaCluster,
		"ValidatingAdmissionPolicy /karmada-agent",
		"ValidatingAdmissionPolicyBinding /karmada-agent",
		"ValidatingAdmissionPolicy /" + agent.GeneratorPolicy,
		"ValidatingAdmissionPolicyBinding /" + agent.GeneratorPolicy,
	} {
		if all[key] == nil {
			t.Errorf("%s is missing", key)
		}
	}
	subjects := map[string]rbacv1.Subject{
		"system:karmada:agent-bootstrap":                        {APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: agent.BootstrapGroup},
		"system:karmada:agent-autoapprove-bootstrap":            {APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: agent.BootstrapGroup},
		"system:karmada:agent-autoapprove-certificate-rotation": {APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: agent.Group},
		"system:karmada:agent-rbac-generator":                   {APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: agent.GeneratorUser},
	}
	for name, want := range subjects {
		binding := decode[rbacv1.ClusterRoleBinding](t, all["ClusterRoleBinding /"+name])
		if diff := cmp.Diff([]rbacv1.Subject{want}, binding.Subjects); diff != "" {
			t.Errorf("subjects of %s (-want +got):\n%s", name, diff)
		}
	}
	epoch := decode[rbacv1.Role](t, all["Role karmada-system/karmada-epoch-reader"])
	if diff := cmp.Diff([]string{clusterv1alpha1.EpochName}, epoch.Rules[0].ResourceNames); diff != "" {
		t.Errorf("names in the role of the epoch (-want +got):\n%s", diff)
	}
	for subresource, role := range map[string]string{
		agent.ApproveAny: "system:karmada:certificatesigningrequest:autoapprover", agent.ApproveSelf: "system:karmada:certificatesigningrequest:selfautoapprover",
	} {
		approver := decode[rbacv1.ClusterRole](t, all["ClusterRole /"+role])
		if diff := cmp.Diff([]string{"certificatesigningrequests/" + subresource}, approver.Rules[0].Resources); diff != "" {
			t.Errorf("resources of %s (-want +got):\n%s", role, diff)
		}
	}
}

func TestOnlyAdministratorsMayDoEverything(t *testing.T) {
	for key, object := range renderObjects(t) {
		if object.GetObjectKind().GroupVersionKind().Kind != "ClusterRole" || object.GetName() == "cluster-proxy-admin" {
			continue
		}
		for _, rule := range decode[rbacv1.ClusterRole](t, object).Rules {
			for _, part := range append(append(append([]string{}, rule.APIGroups...), rule.Resources...), rule.Verbs...) {
				if part == "*" {
					t.Errorf("%s allows everything", key)
				}
			}
		}
	}
}

package install

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/domain/agent"
)

func TestClusterInfoContainsOnlyServerAndCA(t *testing.T) {
	object, err := ClusterInfo("https://192.0.2.1:5443", []byte("ca"))
	if err != nil {
		t.Fatal(err)
	}
	info := object.(*corev1.ConfigMap)
	if info.Namespace != "kube-public" || info.Name != "cluster-info" || len(info.Data) != 1 {
		t.Errorf("got %s/%s with %d keys", info.Namespace, info.Name, len(info.Data))
	}
	config, err := clientcmd.Load([]byte(info.Data["kubeconfig"]))
	if err != nil {
		t.Fatal(err)
	}
	if len(config.AuthInfos)+len(config.Contexts) > 0 || len(config.Clusters) != 1 {
		t.Errorf("the kubeconfig holds more than one cluster: %+v", config)
	}
	cluster := config.Clusters[""]
	if cluster == nil || cluster.Server != "https://192.0.2.1:5443" || string(cluster.CertificateAuthorityData) != "ca" {
		t.Errorf("the cluster is %+v", cluster)
	}
}

func TestRegistrationObjects(t *testing.T) {
	objects, err := RegistrationObjects("https://192.0.2.1:5443", []byte("ca"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, object := range objects {
		got = append(got, object.GetObjectKind().GroupVersionKind().Kind+" "+client.ObjectKeyFromObject(object).String())
	}
	want := []string{
		"ConfigMap kube-public/cluster-info",
		"Role kube-public/system:karmada:bootstrap-signer-clusterinfo",
		"RoleBinding kube-public/system:karmada:bootstrap-signer-clusterinfo",
		"ClusterRoleBinding /system:karmada:agent-bootstrap",
		"ClusterRole /system:karmada:certificatesigningrequest:autoapprover",
		"ClusterRoleBinding /system:karmada:agent-autoapprove-bootstrap",
		"ClusterRole /system:karmada:certificatesigningrequest:selfautoapprover",
		"ClusterRoleBinding /system:karmada:agent-autoapprove-certificate-rotation",
		"ClusterRole /system:karmada:agent-rbac-generator",
		"ClusterRoleBinding /system:karmada:agent-rbac-generator",
		"ValidatingAdmissionPolicy /karmada-agent",
		"ValidatingAdmissionPolicyBinding /karmada-agent",
		"ValidatingAdmissionPolicy /" + agent.GeneratorPolicy,
		"ValidatingAdmissionPolicyBinding /" + agent.GeneratorPolicy,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	for _, object := range objects {
		if role, ok := object.(*rbacv1.ClusterRole); ok {
			for _, rule := range role.Rules {
				for _, part := range append(append(append([]string{}, rule.APIGroups...), rule.Resources...), rule.Verbs...) {
					if part == "*" {
						t.Errorf("%s allows everything", role.Name)
					}
				}
			}
		}
	}
}

package install

import (
	_ "embed"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/agent"
)

// policies are the admission policies for the rules about registrations and agents that
// RBAC cannot express.
//
//go:embed policies.yaml
var policies []byte

// ClusterInfo returns the public data for a cluster that registers and has no credentials yet: the
// URL of the control plane, and the CA that verifies its certificate.
func ClusterInfo(server string, ca []byte) (client.Object, error) {
	info := clientcmdapi.Config{Clusters: map[string]*clientcmdapi.Cluster{
		"": {Server: server, CertificateAuthorityData: ca},
	}}
	kubeconfig, err := clientcmd.Write(info)
	if err != nil {
		return nil, fmt.Errorf("writing the kubeconfig of ConfigMap %s: %w", bootstrapapi.ConfigMapClusterInfo, err)
	}
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespacePublic, Name: bootstrapapi.ConfigMapClusterInfo},
		Data:       map[string]string{bootstrapapi.KubeConfigKey: string(kubeconfig)},
	}, nil
}

// RegistrationObjects returns the objects that allow clusters to register: ClusterInfo, the right
// to read ClusterInfo without authentication, the rights of holders of a bootstrap token, and the
// admission policies that limit the rights of agents.
func RegistrationObjects(server string, ca []byte) ([]client.Object, error) {
	info, err := ClusterInfo(server, ca)
	if err != nil {
		return nil, err
	}
	objects := append([]client.Object{info}, clusterInfoReaderRole()...)
	objects = append(objects, newClusterRoleBinding("system:karmada:agent-bootstrap", "system:node-bootstrapper", rbacv1.GroupKind, agent.BootstrapGroup))
	objects = append(objects, approvalRoles()...)
	objects = append(objects, generatorRole(), newClusterRoleBinding("system:karmada:agent-rbac-generator", "system:karmada:agent-rbac-generator", rbacv1.UserKind, agent.GeneratorUser))
	var list []map[string]any
	if err := yaml.Unmarshal(policies, &list); err != nil {
		return nil, fmt.Errorf("reading admission policies: %w", err)
	}
	for _, content := range list {
		objects = append(objects, &unstructured.Unstructured{Object: content})
	}
	return objects, nil
}

func clusterInfoReaderRole() []client.Object {
	const name = "system:karmada:bootstrap-signer-clusterinfo"
	meta := metav1.ObjectMeta{Namespace: metav1.NamespacePublic, Name: name, Labels: systemLabels()}
	return []client.Object{
		&rbacv1.Role{
			TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"}, ObjectMeta: meta,
			Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{corev1.GroupName}, Resources: []string{"configmaps"}, Verbs: []string{"get"},
				ResourceNames: []string{bootstrapapi.ConfigMapClusterInfo},
			}},
		},
		&rbacv1.RoleBinding{
			TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"}, ObjectMeta: meta,
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "system:anonymous"}},
		},
	}
}

func approvalRoles() []client.Object {
	create := func(subresource string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{
			APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests/" + subresource}, Verbs: []string{"create"},
		}
	}
	const approver, selfApprover = "system:karmada:certificatesigningrequest:autoapprover", "system:karmada:certificatesigningrequest:selfautoapprover"
	return []client.Object{
		newClusterRole(approver, create(agent.ApproveAny)),
		newClusterRoleBinding("system:karmada:agent-autoapprove-bootstrap", approver, rbacv1.GroupKind, agent.BootstrapGroup),
		newClusterRole(selfApprover, create(agent.ApproveSelf)),
		newClusterRoleBinding("system:karmada:agent-autoapprove-certificate-rotation", selfApprover, rbacv1.GroupKind, agent.Group),
	}
}

// generatorRole returns the role of the user with which the register command of other releases
// creates the roles of an agent. Every holder of a bootstrap token can act as this user. RBAC allows
// the user to create any role, but the admission policy karmada-agent-rbac-generator allows only the
// roles of agents. The user cannot delete roles, because the deletion of roles would disconnect
// members.
func generatorRole() client.Object {
	rule := func(group string, verbs []string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
	}
	return newClusterRole("system:karmada:agent-rbac-generator",
		rule(clusterv1alpha1.GroupName, []string{"get"}, "clusters"),
		rule(corev1.GroupName, []string{"get", "create"}, "namespaces"),
		rule(rbacv1.GroupName, []string{"get", "create", "update"}, "clusterroles", "clusterrolebindings", "roles", "rolebindings"),
		rule(rbacv1.GroupName, []string{"escalate", "bind"}, "clusterroles", "roles"),
		rule("certificates.k8s.io", []string{"get", "delete"}, "certificatesigningrequests"),
	)
}

package pull

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/loop/patch"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/clusterclient"
	"karmada.io/karmada/internal/registration/enroll"
)

// Names of the agent's objects in a member. Other releases use the same names, so that each release can
// unregister a cluster that another release registered.
const (
	// AgentKubeconfig is the name of the Secret that contains the agent's kubeconfig, and the
	// kubeconfig's key in this Secret.
	AgentKubeconfig = "karmada-kubeconfig"
	// AgentAccount is the name of the agent's ServiceAccount in the member.
	AgentAccount  = "karmada-agent-sa"
	kubeconfigDir = "/etc/kubeconfig"
	appLabel      = "app"
)

func agentLabels() map[string]string { return map[string]string{appLabel: AgentName} }

// installAgent creates the agent and the objects that it needs in the member.
func (r Register) installAgent(ctx context.Context, member *clusterclient.Client, kubeconfig []byte) error {
	keepExisting := func(client.Object) error { return nil }
	reject := func(client.Object) error {
		return errors.New("it was created during the registration: check whether another run registers this cluster")
	}
	role, binding := r.agentRole(), r.agentBinding()
	r.logf("[karmada-agent-start] Installing the agent in namespace %s of %s", r.Namespace, member.Name)
	type wanted struct {
		ensure func(context.Context, client.Object, func(client.Object) error) (client.Object, error)
		want   client.Object
		adopt  func(client.Object) error
	}
	list := []wanted{
		// unregister keeps this namespace, so the namespace names no owner.
		{member.Ensure, registration.NewNamespace(r.Namespace), keepExisting},
		{member.EnsureOwned, r.kubeconfigSecret(kubeconfig), reject},
		{member.EnsureShared, role, func(have client.Object) error { return enroll.AdoptRole(have, role) }},
		{member.EnsureOwned, r.agentServiceAccount(), reject},
		{member.EnsureShared, binding, func(have client.Object) error { return addSubjects(have, binding) }},
		{member.EnsureOwned, r.agentDeployment(), reject},
	}
	if r.MemberRole != "" {
		if err := r.grantMemberRole(ctx, member); err != nil {
			return err
		}
		list = slices.DeleteFunc(list, func(each wanted) bool { return each.want == client.Object(role) || each.want == client.Object(binding) })
	}
	for _, each := range list {
		if _, err := each.ensure(ctx, each.want, each.adopt); err != nil {
			return err
		}
	}
	return nil
}

func (r Register) agentServiceAccount() *corev1.ServiceAccount {
	return registration.NewServiceAccount(r.Namespace, AgentAccount)
}

// agentRole returns a ClusterRole that permits everything, because the propagated kinds are not known
// in advance.
func (r Register) agentRole() *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: AgentName, Labels: registration.SystemLabels()},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{rbacv1.APIGroupAll}, Resources: []string{rbacv1.ResourceAll}, Verbs: []string{rbacv1.VerbAll}},
			{NonResourceURLs: []string{rbacv1.NonResourceAll}, Verbs: []string{rbacv1.VerbAll}},
		},
	}
}

func (r Register) agentBinding() *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: AgentName, Labels: registration.SystemLabels()},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: AgentName},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: r.Namespace, Name: AgentAccount}},
	}
}

// addSubjects adds the agent to the subjects of the ClusterRoleBinding that permits everything. The
// agents of several control planes share this binding.
func addSubjects(have client.Object, want *rbacv1.ClusterRoleBinding) error {
	binding, ok := have.(*rbacv1.ClusterRoleBinding)
	if !ok {
		return fmt.Errorf("it is a %T", have)
	}
	others := withoutSubjects(binding.Subjects, want.Subjects)
	if err := enroll.AdoptBinding(binding, want); err != nil {
		return err
	}
	binding.Subjects = slices.Concat(others, want.Subjects)
	return nil
}

// withoutSubjects returns the subjects that are not in removed.
func withoutSubjects(subjects, removed []rbacv1.Subject) (kept []rbacv1.Subject) {
	for _, subject := range subjects {
		if !slices.Contains(removed, subject) {
			kept = append(kept, subject)
		}
	}
	return kept
}

// deleteFromBinding removes the agent from the ClusterRoleBinding that several control planes' agents
// share. If no subject remains, it deletes the binding and the role.
func (r Register) deleteFromBinding(ctx context.Context, member *clusterclient.Client) error {
	have, err := member.Get(ctx, r.agentBinding())
	if err != nil {
		return err
	}
	binding, ok := have.(*rbacv1.ClusterRoleBinding)
	if !ok {
		return member.Delete(ctx, r.agentRole())
	}
	others := withoutSubjects(binding.Subjects, r.agentBinding().Subjects)
	if binding.RoleRef != r.agentBinding().RoleRef {
		return nil // an unrelated binding has the same name
	}
	if len(others) == 0 {
		return errors.Join(member.Delete(ctx, binding), member.Delete(ctx, r.agentRole()))
	}
	member.Log.Printf("keeping %s in %s: %s %s/%s belongs to another control plane", member.Describe(binding), member.Name, others[0].Kind,
		others[0].Namespace, others[0].Name)
	return errors.Join(r.keepSubjects(ctx, member, binding, others), member.Release(ctx, r.agentBinding()), member.Release(ctx, r.agentRole()))
}

// keepSubjects updates the binding so that it contains only the given subjects.
func (r Register) keepSubjects(ctx context.Context, member *clusterclient.Client, binding *rbacv1.ClusterRoleBinding,
	others []rbacv1.Subject) error {
	changed := binding.DeepCopy()
	changed.Subjects = others
	if _, err := patch.Object(ctx, member.API, binding, changed); client.IgnoreNotFound(err) != nil {
		return member.WrapError("changing", binding, err)
	}
	return nil
}

// revertBinding removes the agent from a ClusterRoleBinding that existed before this run.
func (r Register) revertBinding(ctx context.Context, member *clusterclient.Client) error {
	have, err := member.Get(ctx, r.agentBinding())
	binding, ok := have.(*rbacv1.ClusterRoleBinding)
	if err != nil || !ok {
		return err
	}
	return r.keepSubjects(ctx, member, binding, withoutSubjects(binding.Subjects, r.agentBinding().Subjects))
}

func (r Register) agentDeployment() *appsv1.Deployment {
	replicas := r.Replicas
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: AgentName, Labels: agentLabels()},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: agentLabels()},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: agentLabels()},
				Spec: corev1.PodSpec{
					ServiceAccountName: AgentAccount,
					Containers: []corev1.Container{{
						Name: AgentName, Image: r.Image, Command: r.agentCommand(),
						Ports: []corev1.ContainerPort{
							{Name: "metrics", ContainerPort: 8080, Protocol: corev1.ProtocolTCP},
							{Name: "health", ContainerPort: 10357, Protocol: corev1.ProtocolTCP},
						},
						VolumeMounts: []corev1.VolumeMount{{Name: "kubeconfig", MountPath: kubeconfigDir}},
					}},
					Volumes: []corev1.Volume{{
						Name:         "kubeconfig",
						VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: AgentKubeconfig}},
					}},
					Tolerations: []corev1.Toleration{{Key: "node-role.kubernetes.io/master", Operator: corev1.TolerationOpExists}},
				},
			},
		},
	}
}

// memberEndpoint returns the address to store in the Cluster, or an empty string if the agent chooses
// it.
func (r Register) memberEndpoint() string {
	if r.omitEndpoint {
		return ""
	}
	return registration.Endpoint(r.Member)
}

func (r Register) agentCommand() []string {
	controllers := "*"
	if r.CertRotation {
		controllers = "*,certRotation"
	}
	command := []string{
		"/bin/karmada-agent",
		"--karmada-kubeconfig=" + kubeconfigDir + "/" + AgentKubeconfig,
		"--cluster-name=" + r.Name,
		"--cluster-api-endpoint=" + r.memberEndpoint(),
		"--cluster-provider=" + r.Provider,
		"--cluster-region=" + r.Region,
		"--cluster-zones=" + strings.Join(r.Zones, ","),
		"--controllers=" + controllers,
		"--proxy-server-address=" + r.ProxyURL,
		// The Lease is in the control plane, where this namespace exists, but not necessarily the
		// agent's namespace.
		"--leader-elect-resource-namespace=" + clusterv1alpha1.NamespaceKarmadaSystem,
		"--cluster-namespace=" + r.ClusterNamespace,
		"--cluster-status-update-frequency=10s",
		"--metrics-bind-address=:8080",
		"--health-probe-bind-address=0.0.0.0:10357",
		"--v=2",
	}
	if r.MemberRole != "" {
		// The agent cannot create accounts with more permissions than it has itself, so it must not
		// report any account.
		command = append(command, "--report-secrets=None")
	}
	return command
}

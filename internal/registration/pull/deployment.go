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

	"karmada.io/karmada/internal/access/patch"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/grant"
	"karmada.io/karmada/internal/registration/side"
)

// Names of what a member holds for its agent. Other releases use the same ones.
const (
	// AgentKubeconfig is the Secret with the kubeconfig of the agent, and its key.
	AgentKubeconfig = "karmada-kubeconfig"
	// AgentAccount is the service account that the agent acts as in the member.
	AgentAccount  = "karmada-agent-sa"
	kubeconfigDir = "/etc/kubeconfig"
	appLabel      = "app"
)

func agentLabels() map[string]string { return map[string]string{appLabel: AgentName} }

// installAgent creates what the agent needs in the member, and the agent.
func (r Register) installAgent(ctx context.Context, member *side.Side, kubeconfig []byte) error {
	asIs := func(client.Object) error { return nil }
	refuse := func(client.Object) error {
		return fmt.Errorf("it appeared during the registration: see who else registers this cluster")
	}
	rights, bound := r.role(), r.binding()
	r.logf("[karmada-agent-start] Installing the agent in namespace %s of %s", r.Namespace, member.Name)
	type wanted struct {
		want  client.Object
		adopt func(client.Object) error
	}
	list := []wanted{
		{registration.Namespace(r.Namespace), asIs},
		{r.credentials(kubeconfig), refuse},
		{rights, func(have client.Object) error { return grant.AdoptRole(have, rights) }},
		{r.serviceAccount(), refuse},
		{bound, func(have client.Object) error { return joinBinding(have, bound) }},
		{r.deployment(), refuse},
	}
	if r.MemberRole != "" {
		if err := r.grantLimits(ctx, member); err != nil {
			return err
		}
		list = slices.DeleteFunc(list, func(each wanted) bool { return each.want == client.Object(rights) || each.want == client.Object(bound) })
	}
	for _, each := range list {
		if _, err := member.Ensure(ctx, each.want, each.adopt); err != nil {
			return err
		}
	}
	return nil
}

func (r Register) serviceAccount() *corev1.ServiceAccount {
	return registration.Account(r.Namespace, AgentAccount)
}

// role allows everything: what will be propagated is not known beforehand.
func (r Register) role() *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: AgentName, Labels: registration.SystemLabels()},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{rbacv1.APIGroupAll}, Resources: []string{rbacv1.ResourceAll}, Verbs: []string{rbacv1.VerbAll}},
			{NonResourceURLs: []string{rbacv1.NonResourceAll}, Verbs: []string{rbacv1.VerbAll}},
		},
	}
}

func (r Register) binding() *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: AgentName, Labels: registration.SystemLabels()},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: AgentName},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: r.Namespace, Name: AgentAccount}},
	}
}

// joinBinding adds the agent to those whom the binding lets do everything: it has one
// name, and a member may have agents of several control planes.
func joinBinding(have client.Object, want *rbacv1.ClusterRoleBinding) error {
	binding, ok := have.(*rbacv1.ClusterRoleBinding)
	if !ok {
		return fmt.Errorf("it is a %T", have)
	}
	others := without(binding.Subjects, want.Subjects)
	if err := grant.AdoptBinding(binding, want); err != nil {
		return err
	}
	binding.Subjects = slices.Concat(others, want.Subjects)
	return nil
}

func without(subjects, gone []rbacv1.Subject) (kept []rbacv1.Subject) {
	for _, subject := range subjects {
		if !slices.Contains(gone, subject) {
			kept = append(kept, subject)
		}
	}
	return kept
}

// leaveBinding takes the agent out of the binding that it shares with agents of other
// control planes. The last one takes binding and role along.
func (r Register) leaveBinding(ctx context.Context, member *side.Side) error {
	have, err := member.Get(ctx, r.binding())
	if err != nil {
		return err
	}
	binding, ok := have.(*rbacv1.ClusterRoleBinding)
	if !ok {
		return member.Delete(ctx, r.role())
	}
	others := without(binding.Subjects, r.binding().Subjects)
	if binding.RoleRef != r.binding().RoleRef {
		return nil // Somebody else's, of the same name.
	}
	if len(others) == 0 {
		return errors.Join(member.Delete(ctx, binding), member.Delete(ctx, r.role()))
	}
	member.Log.Printf("keeping %s in %s: %s %s/%s is there for another control plane", member.Describe(binding), member.Name, others[0].Kind, others[0].Namespace, others[0].Name)
	return r.leaveOthers(ctx, member, binding, others)
}

func (r Register) leaveOthers(ctx context.Context, member *side.Side, binding *rbacv1.ClusterRoleBinding, others []rbacv1.Subject) error {
	left := binding.DeepCopy()
	left.Subjects = others
	if _, err := patch.Object(ctx, member.API, binding, left); client.IgnoreNotFound(err) != nil {
		return member.Explain("changing", binding, err)
	}
	return nil
}

// giveBackBinding takes the agent out of a binding that was there before it.
func (r Register) giveBackBinding(ctx context.Context, member *side.Side) error {
	have, err := member.Get(ctx, r.binding())
	binding, ok := have.(*rbacv1.ClusterRoleBinding)
	if err != nil || !ok {
		return err
	}
	return r.leaveOthers(ctx, member, binding, without(binding.Subjects, r.binding().Subjects))
}

// deployment is the agent.
func (r Register) deployment() *appsv1.Deployment {
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
						Name: AgentName, Image: r.Image, Command: r.command(),
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

func (r Register) command() []string {
	controllers := "*"
	if r.CertRotation {
		controllers = "*,certRotation"
	}
	command := []string{
		"/bin/karmada-agent",
		"--karmada-kubeconfig=" + kubeconfigDir + "/" + AgentKubeconfig,
		"--cluster-name=" + r.Name,
		"--cluster-api-endpoint=" + registration.Endpoint(r.Member),
		"--cluster-provider=" + r.Provider,
		"--cluster-region=" + r.Region,
		"--cluster-zones=" + strings.Join(r.Zones, ","),
		"--controllers=" + controllers,
		"--proxy-server-address=" + r.ProxyURL,
		"--leader-elect-resource-namespace=" + r.Namespace,
		"--cluster-namespace=" + r.ClusterNamespace,
		"--cluster-status-update-frequency=10s",
		"--metrics-bind-address=:8080",
		"--health-probe-bind-address=0.0.0.0:10357",
		"--v=2",
	}
	if r.MemberRole != "" {
		// It may not give the control plane accounts that may do more than itself.
		command = append(command, "--report-secrets=None")
	}
	return command
}

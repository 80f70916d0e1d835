package pull

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/registration/clusterclient"
)

// openKarmada creates the client for the control plane. If the user gave no kubeconfig, the client uses
// the agent's credentials.
func (u *unregistration) openKarmada(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, u.Wait)
	defer cancel()
	found, err := u.findAgent(ctx)
	if err != nil {
		return err
	}
	orphaned, err := u.readOrphanedKubeconfig(ctx, found)
	if err != nil {
		return err
	}
	if found != nil {
		u.ClusterNamespace = cmp.Or(flagValue(*found.container, "cluster-namespace"), u.ClusterNamespace)
	}
	config := cmp.Or(u.Karmada, orphaned)
	u.usesAgentCredentials = u.Karmada == nil
	if config == nil {
		if config, err = u.readAgentKubeconfig(ctx, found); err != nil && u.Force {
			u.logf("warning: the control plane will not be cleaned up: %v", err)
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w\nSet the kubeconfig of the control plane with --karmada-config, or use --force to delete the remaining objects of the agent in %s without it", err, u.member.Name)
		}
	}
	u.karmada, err = clusterclient.NewKarmada(config, u.Log)
	return err
}

// readOwner determines the control plane whose objects are deleted in the member. If the control plane
// does not respond, this is the agent's owner. readOwner returns an error if the agent belongs to
// another control plane.
func (u *unregistration) readOwner(ctx context.Context) error {
	if u.memberID == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, u.Wait)
	defer cancel()
	if u.karmada != nil {
		if err := u.member.ReadOwner(ctx, u.karmada); err != nil && !u.Force {
			return err
		}
	}
	installed, err := u.agentOwner(ctx)
	if err != nil {
		return err
	}
	u.member.Owner = cmp.Or(u.member.Owner, installed)
	if installed != "" && installed != u.member.Owner {
		return fmt.Errorf("the agent in %s (%s) belongs to the control plane with ID %s, not to the one with ID %s: check the kubeconfig of the control plane and the context of the member",
			u.member.Name, u.member.Host, installed, u.member.Owner)
	}
	return nil
}

// agentOwner returns the ID of the installed agent's control plane, or an empty string if none of the
// agent's objects names a control plane.
func (u *unregistration) agentOwner(ctx context.Context) (string, error) {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: u.Namespace, Name: u.AgentName}}
	for _, object := range []client.Object{deployment, u.newRegister().kubeconfigSecret(nil), u.newRegister().agentServiceAccount()} {
		have, err := u.member.Get(ctx, object)
		if err != nil {
			return "", err
		}
		if have == nil {
			continue
		}
		if owner := cluster.OtherOwner(have.GetAnnotations()[clusterv1alpha1.ControlPlaneAnnotation], ""); owner != "" {
			return owner, nil
		}
	}
	return "", nil
}

type installedAgent struct {
	deployment *appsv1.Deployment
	container  *corev1.Container
}

// findAgent returns the Cluster's installed agent, or nil if there is none. It returns an error if the
// Deployment is the agent of another Cluster.
func (u *unregistration) findAgent(ctx context.Context) (*installedAgent, error) {
	if u.memberID == "" {
		return nil, nil
	}
	have, err := u.member.Get(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: u.Namespace, Name: u.AgentName}})
	if err != nil || have == nil {
		return nil, err
	}
	deployment := have.(*appsv1.Deployment)
	for i := range deployment.Spec.Template.Spec.Containers {
		container := &deployment.Spec.Template.Spec.Containers[i]
		name := flagValue(*container, "cluster-name")
		if name == u.Name {
			return &installedAgent{deployment, container}, nil
		}
		if name != "" {
			return nil, fmt.Errorf("%s in %s is the agent of Cluster %q, not of %q: check the name and the context of the member",
				u.member.Describe(deployment), u.member.Host, name, u.Name)
		}
	}
	return nil, fmt.Errorf("%s in %s is not an agent: it has no argument --cluster-name; set the Deployment of the agent with --agent-name and --namespace", u.member.Describe(deployment), u.member.Name)
}

// readAgentKubeconfig reads the agent's kubeconfig. The agent's arguments contain the kubeconfig's
// path, at which a Secret is mounted as a volume.
func (u *unregistration) readAgentKubeconfig(ctx context.Context, found *installedAgent) (*rest.Config, error) {
	if found == nil {
		return nil, fmt.Errorf("there is no agent %s/%s in %s, whose credentials for the control plane could be used; a cluster in push mode has no agent: use unjoin", u.Namespace, u.AgentName, u.member.Name)
	}
	file := flagValue(*found.container, "karmada-kubeconfig")
	name, key := mountedSecret(found.deployment.Spec.Template.Spec, *found.container, file)
	if name == "" {
		return nil, fmt.Errorf("the agent %s/%s in %s does not read its kubeconfig %q from a Secret", u.Namespace, u.AgentName, u.member.Name,
			file)
	}
	secret := &corev1.Secret{}
	wanted := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: u.Namespace, Name: name}}
	if err := u.member.API.Get(ctx, client.ObjectKeyFromObject(wanted), secret); err != nil {
		return nil, u.member.WrapError("reading", wanted, err)
	}
	config, err := parseKubeconfig(secret.Data[key], flagValue(*found.container, "karmada-context"))
	if err != nil {
		return nil, fmt.Errorf("reading %s of %s in %s: %w", key, u.member.Describe(wanted), u.member.Name, err)
	}
	return config, nil
}

func parseKubeconfig(kubeconfig []byte, context string) (*rest.Config, error) {
	loaded, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, err
	}
	return clientcmd.NewDefaultClientConfig(*loaded, &clientcmd.ConfigOverrides{CurrentContext: context}).ClientConfig()
}

// readOrphanedKubeconfig returns the client configuration that a registration stored in the kubeconfig
// Secret before it was interrupted, if the agent was not installed yet. It returns nil if there is no
// such Secret. It returns an error if the Secret belongs to another Cluster, because that Cluster may
// currently be registering.
func (u *unregistration) readOrphanedKubeconfig(ctx context.Context, found *installedAgent) (*rest.Config, error) {
	if found != nil || u.memberID == "" {
		return nil, nil
	}
	have, err := u.member.Get(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: u.Namespace, Name: AgentKubeconfig}})
	secret, ok := have.(*corev1.Secret)
	if err != nil || !ok {
		return nil, err
	}
	config, err := parseKubeconfig(secret.Data[AgentKubeconfig], "")
	if err != nil {
		return nil, nil //nolint:nilerr // an unusable kubeconfig belongs to no Cluster
	}
	certificates, err := cert.ParseCertsPEM(config.CertData)
	if err != nil {
		return nil, nil //nolint:nilerr // see above
	}
	owner, ok := agent.ClusterOf(certificates[0].Subject.CommonName)
	switch {
	case !ok:
		return nil, nil
	case owner != u.Name:
		return nil, fmt.Errorf("%s in %s belongs to the agent of Cluster %q, not of %q: check the name and the context of the member",
			u.member.Describe(secret), u.member.Host, owner, u.Name)
	}
	return config, nil
}

// mountedSecret returns the name and the key of the Secret that is mounted at the path file in the
// container. Both are empty if there is none.
func mountedSecret(pod corev1.PodSpec, container corev1.Container, file string) (name, key string) {
	file = path.Clean(file)
	for _, mount := range container.VolumeMounts {
		at := path.Clean(mount.MountPath)
		for _, volume := range pod.Volumes {
			if volume.Name != mount.Name || volume.Secret == nil {
				continue
			}
			if mount.SubPath != "" && at == file {
				return volume.Secret.SecretName, mountedKey(volume.Secret, mount.SubPath)
			}
			if inside, ok := strings.CutPrefix(file, at+"/"); ok && mount.SubPath == "" {
				return volume.Secret.SecretName, mountedKey(volume.Secret, inside)
			}
		}
	}
	return "", ""
}

// mountedKey returns the Secret's key that the volume mounts at the path file.
func mountedKey(volume *corev1.SecretVolumeSource, file string) string {
	for _, item := range volume.Items {
		if item.Path == file {
			return item.Key
		}
	}
	return file
}

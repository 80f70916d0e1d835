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

	"karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/registration/side"
)

// openKarmada makes a client of the control plane, with the credentials of the
// agent if no others were given.
func (d *departure) openKarmada(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, d.Wait)
	defer cancel()
	found, err := d.agent(ctx)
	if err != nil {
		return err
	}
	left, err := d.left(ctx, found)
	if err != nil {
		return err
	}
	if found != nil {
		d.ClusterNamespace = cmp.Or(flagOf(*found.container, "cluster-namespace"), d.ClusterNamespace)
	}
	config := cmp.Or(d.Karmada, left)
	d.borrowed = d.Karmada == nil
	if config == nil {
		if config, err = d.borrow(ctx, found); err != nil && d.Force {
			d.logf("warning: the control plane will not be cleaned up: %v", err)
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w\nName the kubeconfig of the control plane with --karmada-config; with --force what is left of the agent in %s is deleted without it", err, d.member.Name)
		}
	}
	d.karmada, err = side.Karmada(config, d.Log)
	return err
}

// installed is the agent as the member holds it.
type installed struct {
	deployment *appsv1.Deployment
	container  *corev1.Container
}

// agent finds the container of the agent that serves the Cluster, nil if there is
// none. An agent of another Cluster is not touched.
func (d *departure) agent(ctx context.Context) (*installed, error) {
	if d.memberID == "" {
		return nil, nil
	}
	have, err := d.member.Get(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.AgentName}})
	if err != nil || have == nil {
		return nil, err
	}
	deployment := have.(*appsv1.Deployment)
	for i := range deployment.Spec.Template.Spec.Containers {
		container := &deployment.Spec.Template.Spec.Containers[i]
		name := flagOf(*container, "cluster-name")
		if name == d.Name {
			return &installed{deployment, container}, nil
		}
		if name != "" {
			return nil, fmt.Errorf("%s in %s is the agent of Cluster %q, not of %q: check the name and the context of the member", d.member.Describe(deployment), d.member.Host, name, d.Name)
		}
	}
	return nil, fmt.Errorf("%s in %s is no agent: it has no argument --cluster-name; name that of the agent with --agent-name and --namespace", d.member.Describe(deployment), d.member.Name)
}

// borrow reads the kubeconfig that the agent uses: an argument names a path, which
// lies in a volume, which is a Secret.
func (d *departure) borrow(ctx context.Context, found *installed) (*rest.Config, error) {
	if found == nil {
		return nil, fmt.Errorf("there is no agent %s/%s in %s, whose credentials for the control plane could be used; a cluster that was joined has none, and leaves with unjoin", d.Namespace, d.AgentName, d.member.Name)
	}
	file := flagOf(*found.container, "karmada-kubeconfig")
	name, key := secretOf(found.deployment.Spec.Template.Spec, *found.container, file)
	if name == "" {
		return nil, fmt.Errorf("the agent %s/%s in %s has its kubeconfig %q from no Secret", d.Namespace, d.AgentName, d.member.Name, file)
	}
	secret := &corev1.Secret{}
	wanted := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: name}}
	if err := d.member.API.Get(ctx, client.ObjectKeyFromObject(wanted), secret); err != nil {
		return nil, d.member.Explain("reading", wanted, err)
	}
	config, err := configOf(secret.Data[key], flagOf(*found.container, "karmada-context"))
	if err != nil {
		return nil, fmt.Errorf("reading %s of %s in %s: %w", key, d.member.Describe(wanted), d.member.Name, err)
	}
	return config, nil
}

func configOf(kubeconfig []byte, context string) (*rest.Config, error) {
	loaded, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, err
	}
	return clientcmd.NewDefaultClientConfig(*loaded, &clientcmd.ConfigOverrides{CurrentContext: context}).ClientConfig()
}

// left is what the kubeconfig says that a registration has left which ended before it
// had an agent, nil if there is none. That of another Cluster is not touched: it may
// be registering now.
func (d *departure) left(ctx context.Context, found *installed) (*rest.Config, error) {
	if found != nil || d.memberID == "" {
		return nil, nil
	}
	have, err := d.member.Get(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: AgentKubeconfig}})
	secret, ok := have.(*corev1.Secret)
	if err != nil || !ok {
		return nil, err
	}
	config, err := configOf(secret.Data[AgentKubeconfig], "")
	if err != nil {
		return nil, nil //nolint:nilerr // nobody can use it, so it is nobody's
	}
	certificates, err := cert.ParseCertsPEM(config.CertData)
	if err != nil {
		return nil, nil //nolint:nilerr // see above
	}
	of, ok := agent.ClusterOf(certificates[0].Subject.CommonName)
	switch {
	case !ok:
		return nil, nil
	case of != d.Name:
		return nil, fmt.Errorf("%s in %s is that of the agent of Cluster %q, not of %q: check the name and the context of the member", d.member.Describe(secret), d.member.Host, of, d.Name)
	}
	return config, nil
}

// secretOf is the Secret, and its key, that a container finds at a path.
func secretOf(pod corev1.PodSpec, container corev1.Container, file string) (name, key string) {
	file = path.Clean(file)
	for _, mount := range container.VolumeMounts {
		at := path.Clean(mount.MountPath)
		for _, volume := range pod.Volumes {
			if volume.Name != mount.Name || volume.Secret == nil {
				continue
			}
			if mount.SubPath != "" && at == file {
				return volume.Secret.SecretName, keyAt(volume.Secret, mount.SubPath)
			}
			if inside, ok := strings.CutPrefix(file, at+"/"); ok && mount.SubPath == "" {
				return volume.Secret.SecretName, keyAt(volume.Secret, inside)
			}
		}
	}
	return "", ""
}

// keyAt is the key of a Secret that a volume shows at a path.
func keyAt(volume *corev1.SecretVolumeSource, file string) string {
	for _, item := range volume.Items {
		if item.Path == file {
			return item.Key
		}
	}
	return file
}

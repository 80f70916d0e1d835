package addons

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/install"
	"karmada.io/karmada/internal/install/rendering"
)

// estimatorDeployment returns the name of the estimator's Deployment. It is empty without the flag
// --cluster.
func estimatorDeployment(s *session) string {
	if s.cluster == "" {
		return ""
	}
	return clusterv1alpha1.EstimatorPrefix + s.cluster
}

// validateCluster returns an error if the estimator's Service cannot be named after the cluster.
func validateCluster(cluster string) error {
	service := clusterv1alpha1.EstimatorPrefix + cluster
	if problems := validation.IsDNS1035Label(service); len(problems) > 0 {
		return command.NewUsageError("--cluster %s: the name of its Service would be %s, which is invalid: %s", cluster, service,
			strings.Join(problems, ", "))
	}
	return nil
}

func enableEstimator(ctx context.Context, s *session, o *enableOptions) (written int, err error) {
	kubeconfig, err := readMember(ctx, o.member, s.cluster)
	if err != nil {
		return 0, err
	}
	if err := s.verifyKarmada(ctx); err != nil {
		return 0, err
	}
	objects, err := s.renderEstimator(ctx, o.componentValues(install.EstimatorProgram), kubeconfig)
	if err != nil {
		return 0, err
	}
	certificates, err := s.certificates(ctx)
	if err != nil {
		return 0, err
	}
	if written, err = s.hostApplier().Apply(ctx, append(certificates, objects...)...); err != nil {
		return written, err
	}
	address, err := s.awaitAddress(ctx, o)
	if err != nil {
		return written, err
	}
	changed, err := s.karmadaApplier().Apply(ctx, install.EstimatorAddress(s.cluster, address, clusterv1alpha1.EstimatorPort))
	return written + changed, err
}

// renderEstimator returns the estimator's objects in the host cluster. kubeconfig gives access to the
// member.
func (s *session) renderEstimator(ctx context.Context, given values, kubeconfig []byte) ([]client.Object, error) {
	given["memberClusters"] = []any{values{"clusterName": s.cluster, "kubeconfig": string(kubeconfig)}}
	return s.renderAddon(ctx, "schedulerEstimator", given, nil)
}

// verifyKarmada connects to the control plane. It returns an error if another program installed an estimator
// for the cluster, and prints a warning if the Cluster does not exist.
func (s *session) verifyKarmada(ctx context.Context) error {
	if err := s.connectKarmada(ctx); err != nil {
		return err
	}
	err := s.karmadaApplier().VerifyOwner(ctx, install.EstimatorAddress(s.cluster, "", 0))
	if foreign := (*install.ForeignError)(nil); errors.As(err, &foreign) {
		return fmt.Errorf("cluster %s already has an estimator: %w", s.cluster, err)
	}
	if err != nil {
		return err
	}
	cluster := &unstructured.Unstructured{}
	cluster.SetGroupVersionKind(clusterv1alpha1.GroupVersion.WithKind("Cluster"))
	err = s.karmada.Get(ctx, client.ObjectKey{Name: s.cluster}, cluster)
	if apierrors.IsNotFound(err) {
		s.program.Messagef("%s %s has no Cluster %s yet: the estimator is used as soon as the cluster joins under this name",
			s.program.Style.Warn("warning:"), karmadaName, s.cluster)
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading Cluster %s of %s: %w", s.cluster, karmadaName, err)
	}
	return nil
}

// certificates returns the objects that copy the estimator's certificates to the host cluster. It returns
// none if the host cluster already contains certificates. Otherwise, the control plane contains the
// certificates to copy, which karmada up wrote.
func (s *session) certificates(ctx context.Context) ([]client.Object, error) {
	const name = clusterv1alpha1.CertificateSecret
	existing, err := readSecret(ctx, s.host, hostName, s.hostFlags.Namespace, name)
	if err != nil {
		return nil, err
	}
	if existing != nil && existing.Labels[clusterv1alpha1.InstalledByLabel] != installerName {
		return nil, nil
	}
	source, err := readSecret(ctx, s.karmada, karmadaName, clusterv1alpha1.NamespaceKarmadaSystem, name)
	switch {
	case err != nil:
		return nil, err
	case source == nil && existing == nil:
		return nil, errorNoSecret(name, s.hostFlags.Namespace)
	case source == nil:
		return nil, nil
	}
	data := map[string][]byte{}
	for _, key := range []string{install.CertKey, install.KeyKey, install.CAKey} {
		data[key] = source.Data[key]
	}
	objects := []client.Object{install.NewSecret(s.hostFlags.Namespace, name, data)}
	err = s.host.Get(ctx, client.ObjectKey{Name: s.hostFlags.Namespace}, &corev1.Namespace{})
	if apierrors.IsNotFound(err) {
		return append([]client.Object{install.NewNamespace(s.hostFlags.Namespace)}, objects...), nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading namespace %s of %s: %w", s.hostFlags.Namespace, hostName, err)
	}
	return objects, nil
}

var errNoPodAddress = errors.New("the Pod of the estimator has no address: run the command again")

// awaitAddress waits for the estimator's Pods and returns the host name at which the control plane reaches
// the estimator. In a cluster with a Service network, this is the Service's name, and Pods that are not
// ready in time only cause a warning. In a simulated cluster, only its own Pods can resolve Service names,
// so a control plane elsewhere uses a Pod's address.
func (s *session) awaitAddress(ctx context.Context, o *enableOptions) (string, error) {
	isSimulated, err := s.isSimulatedHost(ctx)
	if err != nil {
		return "", err
	}
	installation, err := install.StoredValues(ctx, s.host, s.hostFlags.Namespace, rendering.DefaultRelease)
	if err != nil {
		return "", err
	}
	name := estimatorDeployment(s)
	err = s.awaitReady(ctx, name, o.podTimeoutDuration())
	if !isSimulated || installation != nil {
		if late := (*install.NotReadyError)(nil); errors.As(err, &late) {
			s.program.Messagef("%s %v", s.program.Style.Warn("warning:"), err)
			err = nil
		}
		return fmt.Sprintf("%s.%s.svc.%s", name, s.hostFlags.Namespace, o.hostDomain), err
	}
	if err != nil {
		return "", err
	}
	pods, err := install.ListPods(ctx, s.host, s.hostFlags.Namespace, map[string]string{"app": name})
	if err != nil {
		return "", err
	}
	for i := range pods {
		if pods[i].DeletionTimestamp == nil && pods[i].Status.PodIP != "" {
			return pods[i].Status.PodIP, nil
		}
	}
	return "", errNoPodAddress
}

// isSimulatedHost reports whether the host cluster is a simulated member of karmada up.
func (s *session) isSimulatedHost(ctx context.Context) (bool, error) {
	nodes := &metav1.PartialObjectMetadataList{}
	nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := s.host.List(ctx, nodes, client.HasLabels{clusterv1alpha1.ProgramNodeLabel}, client.Limit(1)); err != nil {
		return false, fmt.Errorf("listing the nodes of %s: %w", hostName, err)
	}
	return len(nodes.Items) > 0, nil
}

func disableEstimator(ctx context.Context, s *session) error {
	if err := s.connectKarmada(ctx); err != nil {
		return err
	}
	// Delete the address first, so that the scheduler does not call an estimator that is being removed.
	if err := s.karmadaApplier().Delete(ctx, install.EstimatorAddress(s.cluster, "", 0)); err != nil {
		return err
	}
	// Only the objects' names are used, so the kubeconfig does not matter.
	objects, err := s.renderEstimator(ctx, values{}, []byte("{}"))
	if err != nil {
		return err
	}
	slices.Reverse(objects) // the Deployment uses the others
	if err := s.hostApplier().Delete(ctx, objects...); err != nil {
		return err
	}
	return s.deleteCertificates(ctx)
}

// deleteCertificates deletes the certificates that enable copied to the host cluster, unless another addon's
// Deployment still uses them.
func (s *session) deleteCertificates(ctx context.Context) error {
	existing, err := readSecret(ctx, s.host, hostName, s.hostFlags.Namespace, clusterv1alpha1.CertificateSecret)
	if err != nil || existing == nil || existing.Labels[clusterv1alpha1.InstalledByLabel] != installerName {
		return err
	}
	deployments := &appsv1.DeploymentList{}
	if err := s.host.List(ctx, deployments, client.InNamespace(s.hostFlags.Namespace),
		client.MatchingLabels{clusterv1alpha1.InstalledByLabel: installerName}); err != nil {
		return fmt.Errorf("listing the Deployments of addons in %s: %w", hostName, err)
	}
	if len(deployments.Items) > 0 {
		return nil
	}
	return s.hostApplier().Delete(ctx, install.NewSecret(s.hostFlags.Namespace, clusterv1alpha1.CertificateSecret, nil))
}

package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// preflight runs all checks that need no write.
func (i *Installer) preflight(ctx context.Context) (err error) {
	if i.stored, err = readStored(ctx, i.host, i.Namespace, i.Release); err != nil {
		return err
	}
	checks := []func(context.Context) error{i.validateValues, i.verifyPermissions, i.verifyExisting, i.verifyNodePort, i.verifyStorageClass,
		i.verifyEtcdMembers}
	var errs []error
	for _, check := range checks {
		errs = append(errs, check(ctx))
	}
	return errors.Join(errs...)
}

// VersionError means that the host cluster contains an installation of another version.
type VersionError struct{ Namespace, Installed, Wanted string }

// Error implements error.
func (v *VersionError) Error() string {
	return fmt.Sprintf("the installation in namespace %s of %s has version %s, and this program has version %s: use the program of version %s, because this version cannot upgrade an installation yet", v.Namespace, HostName, v.Installed, v.Wanted, v.Installed)
}

// verifyExisting returns an error if the namespace contains a control plane of another version or of another
// tool.
func (i *Installer) verifyExisting(ctx context.Context) error {
	if i.stored != nil {
		if i.stored.Version != i.Version {
			return &VersionError{Namespace: i.Namespace, Installed: i.stored.Version, Wanted: i.Version}
		}
		return nil
	}
	for _, object := range []client.Object{&appsv1.Deployment{}, &appsv1.StatefulSet{}} {
		err := i.host.Get(ctx, client.ObjectKey{Namespace: i.Namespace, Name: i.settings.apiServer}, object)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading %s/%s of %s: %w", i.Namespace, i.settings.apiServer, HostName, err)
		}
		if object.GetLabels()[clusterv1alpha1.InstalledByLabel] != InstallationManager {
			return fmt.Errorf("%s/%s in %s exists, and another tool installed it (labels: %s): use that tool, or choose another namespace with --namespace; nothing is changed", i.Namespace, i.settings.apiServer, HostName, formatLabels(object.GetLabels()))
		}
	}
	return nil
}

func formatLabels(labels map[string]string) string {
	var pairs []string
	for _, key := range []string{"app.kubernetes.io/managed-by", clusterv1alpha1.BootstrappingLabel, clusterv1alpha1.InstalledByLabel} {
		if value, ok := labels[key]; ok {
			pairs = append(pairs, key+"="+value)
		}
	}
	if pairs == nil {
		return "none of a known tool"
	}
	return strings.Join(pairs, ", ")
}

// managedResources are the resources that an installation writes in its namespace.
var managedResources = []authorizationv1.ResourceAttributes{
	{Group: "apps", Resource: "deployments"},
	{Group: "apps", Resource: "statefulsets"},
	{Resource: "services"},
	{Resource: "secrets"},
	{Resource: "serviceaccounts"},
	{Group: "rbac.authorization.k8s.io", Resource: "roles"},
	{Group: "rbac.authorization.k8s.io", Resource: "rolebindings"},
	{Group: "batch", Resource: "cronjobs"},
	{Group: "policy", Resource: "poddisruptionbudgets"},
}

// verifyPermissions returns an error that lists the permissions that the user lacks in the host cluster.
func (i *Installer) verifyPermissions(ctx context.Context) error {
	var missing []string
	for _, resource := range managedResources {
		for _, verb := range []string{"get", "create", "patch"} {
			resource.Verb, resource.Namespace = verb, i.Namespace
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &resource}}
			if err := i.host.Create(ctx, review); err != nil {
				return fmt.Errorf("checking your permissions in %s: %w", HostName, err)
			}
			if !review.Status.Allowed {
				missing = append(missing, strings.TrimSuffix(verb+" "+resource.Resource+"."+resource.Group, "."))
			}
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("you lack permissions in namespace %s of %s: %s: ask an administrator of the cluster for the role cluster-admin, or for these permissions", i.Namespace, HostName, strings.Join(missing, ", "))
	}
	return nil
}

// verifyNodePort returns an error if another Service uses the API server's node port.
func (i *Installer) verifyNodePort(ctx context.Context) error {
	nodePort := i.settings.APIServer.NodePort
	if nodePort == 0 {
		return nil
	}
	services := &corev1.ServiceList{}
	err := i.host.List(ctx, services)
	if apierrors.IsForbidden(err) {
		return nil // the API server rejects a port that is taken
	}
	if err != nil {
		return fmt.Errorf("listing the Services of %s: %w", HostName, err)
	}
	for _, service := range services.Items {
		if service.Namespace == i.Namespace && service.Name == i.settings.apiServer {
			continue
		}
		for _, port := range service.Spec.Ports {
			if port.NodePort == nodePort {
				return fmt.Errorf("node port %d of %s is used by Service %s/%s: choose another port with --port", nodePort, HostName, service.Namespace,
					service.Name)
			}
		}
	}
	return nil
}

// defaultClassAnnotation marks the StorageClass for claims without a class.
const defaultClassAnnotation = "storageclass.kubernetes.io/is-default-class"

// verifyStorageClass returns an error if the StorageClass for etcd's data does not exist.
func (i *Installer) verifyStorageClass(ctx context.Context) error {
	etcdSettings := i.settings.Etcd.Internal
	if i.settings.spec.EtcdReplicas == 0 || etcdSettings.StorageType != "pvc" {
		return nil
	}
	wanted := etcdSettings.PVC.StorageClass
	classes := &storagev1.StorageClassList{}
	if err := i.host.List(ctx, classes); err != nil {
		return fmt.Errorf("listing the StorageClasses of %s: %w", HostName, err)
	}
	var names []string
	for at := range classes.Items {
		class := &classes.Items[at]
		isDefault := class.Annotations[defaultClassAnnotation] == "true"
		if class.Name == wanted || wanted == "" && isDefault {
			return nil
		}
		names = append(names, class.Name)
	}
	if names == nil {
		names = []string{"none"}
	}
	if wanted == "" {
		return fmt.Errorf("%s has no default StorageClass for the data of etcd: choose one with --storage-classes-name (existing: %s)", HostName,
			strings.Join(names, ", "))
	}
	return fmt.Errorf("StorageClass %s does not exist in %s: choose another with --storage-classes-name (existing: %s)", wanted, HostName,
		strings.Join(names, ", "))
}

// validateValues returns an error if the chart rejects the values.
func (i *Installer) validateValues(context.Context) error {
	_, err := i.Installation.Host()
	return err
}

// verifyEtcdMembers returns an error if the installed etcd would get another number of members.
func (i *Installer) verifyEtcdMembers(ctx context.Context) error {
	if i.settings.spec.EtcdReplicas == 0 {
		return nil // an external etcd
	}
	installed := &appsv1.StatefulSet{}
	err := i.host.Get(ctx, client.ObjectKey{Namespace: i.Namespace, Name: etcd}, installed)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading StatefulSet %s/%s of %s: %w", i.Namespace, etcd, HostName, err)
	}
	members, wanted := etcdMembers(installed.Spec.Template.Spec), i.settings.spec.EtcdReplicas
	if members == 0 || members == wanted {
		return nil
	}
	return fmt.Errorf("the installed etcd in namespace %s of %s has %d members, not %d: new members could form an empty cluster beside the one with your data; keep --etcd-replicas=%d, or restore a backup into a new installation with --etcd-replicas=%d, as docs/high-availability.md describes; nothing is changed",
		i.Namespace, HostName, members, wanted, members, wanted)
}

// etcdMembers returns the number of members with which a Pod of etcd was created, or 0 if it is unknown. It
// does not read the number of replicas, because a restore scales etcd to 0.
func etcdMembers(pod corev1.PodSpec) int {
	for _, container := range pod.Containers {
		for _, argument := range slices.Concat(container.Command, container.Args) {
			if members, ok := strings.CutPrefix(argument, "--initial-cluster="); ok {
				return len(strings.Split(members, ","))
			}
		}
	}
	return 0
}

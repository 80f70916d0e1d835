package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/api/crds"
	"karmada.io/karmada/internal/install/rendering"
)

// CRD is a CRD of the control plane.
type CRD = crds.CRD

const (
	pollInterval = 200 * time.Millisecond
	// reachTimeout limits the wait for a connection to an API server that is ready.
	reachTimeout = 30 * time.Second
	// availableTimeout limits the wait for each aggregated API.
	availableTimeout = 2 * time.Minute
	// aggregatedPort is the Service port of the webhook and of aggregated API servers.
	aggregatedPort = 443
)

// startAPIServer applies the objects without Pods, etcd and the API server, and waits for both servers.
func (i *Installer) startAPIServer(ctx context.Context) error {
	if err := i.ensureNamespace(ctx); err != nil {
		return err
	}
	if err := i.labelEtcdNode(ctx); err != nil {
		return err
	}
	all, _ := i.inventory()
	if err := i.store(ctx, all, !i.isFirst()); err != nil {
		return err
	}
	if err := i.apply(ctx, i.objects.passive...); err != nil {
		return err
	}
	if err := i.apply(ctx, i.objects.servers...); err != nil {
		return err
	}
	if err := i.awaitReady(ctx, i.objects.servers...); err != nil {
		return err
	}
	return i.connect(ctx)
}

// ensureNamespace creates the namespace in the host cluster. It keeps an existing namespace unchanged, and
// waits for the end of a deletion before it creates the namespace again.
func (i *Installer) ensureNamespace(ctx context.Context) error {
	existing := &corev1.Namespace{}
	err := i.host.Get(ctx, client.ObjectKey{Name: i.Namespace}, existing)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading namespace %s of %s: %w", i.Namespace, HostName, err)
	}
	if err == nil && existing.DeletionTimestamp == nil {
		return nil
	}
	if err == nil && !i.applier.DryRun {
		i.Progressf("Namespace %s is being deleted in %s, which takes up to %s", i.Namespace, HostName, namespaceDeletedTimeout)
		if err := awaitNamespaceDeleted(ctx, i.host, i.Namespace); err != nil {
			return err
		}
	}
	return i.apply(ctx, NewNamespace(i.Namespace))
}

// namespaceDeletedTimeout limits the wait for a namespace's deletion.
const namespaceDeletedTimeout = 2 * time.Minute

// awaitNamespaceDeleted waits until a namespace that is being deleted does not exist.
func awaitNamespaceDeleted(ctx context.Context, host client.Client, name string) error {
	err := wait.PollUntilContextTimeout(ctx, pollInterval, namespaceDeletedTimeout, true, func(ctx context.Context) (bool, error) {
		err := host.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{})
		return apierrors.IsNotFound(err), nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the deletion of namespace %s in %s: %w: see the conditions of the namespace for what remains in it", name,
			HostName, err)
	}
	return nil
}

func (i *Installer) labelEtcdNode(ctx context.Context) error {
	if i.EtcdNode == "" {
		return nil
	}
	i.Progressf("node %s is labeled with %s, because its disk stores etcd's data", i.EtcdNode, clusterv1alpha1.EtcdNodeLabel)
	i.written++
	return (&Host{api: i.host}).patchLabel(ctx, i.EtcdNode, `""`)
}

// connect waits until this program can reach the control plane's API server.
func (i *Installer) connect(ctx context.Context) error {
	config := i.karmadaConfig()
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("creating a client of %s: %w", KarmadaName, err)
	}
	var lastErr error
	err = wait.PollUntilContextTimeout(ctx, pollInterval, reachTimeout, true, func(ctx context.Context) (bool, error) {
		lastErr = client.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
		return lastErr == nil, nil
	})
	if err != nil {
		return fmt.Errorf("reaching %s at %s: %w: check that this machine reaches the address, or set another one with --karmada-apiserver-advertise-address", KarmadaName, config.Host, lastErr)
	}
	i.karmada = config
	return nil
}

// prepareControlPlane applies the control plane's namespaces, CRDs and roles. It does not register the
// webhook and the aggregated APIs, because the API server calls a registered server for each matching
// request, and these servers do not run yet.
func (i *Installer) prepareControlPlane(ctx context.Context) error {
	namespaces, others, err := i.controlPlaneObjects(rendering.ControlPlane{})
	if err != nil {
		return err
	}
	for _, group := range [][]client.Object{namespaces, others} {
		if err := i.applyKarmada(ctx, group...); err != nil {
			return err
		}
	}
	conversion := Conversion{URL: i.webhookURL() + crds.ConversionPath, CABundle: i.files["ca.crt"]}
	written, err := ApplyCRDs(ctx, i.karmada, i.CRDs, conversion)
	i.written += written
	return err
}

func (i *Installer) controlPlaneObjects(c rendering.ControlPlane) (namespaces, others []client.Object, err error) {
	c.Server, c.CA = i.settings.externalURL, i.files["ca.crt"]
	return ControlPlaneObjects(i.Installation, c)
}

func (i *Installer) serviceHost(component string) string {
	return fmt.Sprintf("%s-%s.%s.svc", i.Release, component, i.Namespace)
}

func (i *Installer) webhookURL() string {
	return fmt.Sprintf("https://%s:%d", i.serviceHost(webhook), aggregatedPort)
}

// startComponents applies the components and waits for those that are servers, because the others call them.
func (i *Installer) startComponents(ctx context.Context) error {
	if err := i.apply(ctx, i.objects.components...); err != nil {
		return err
	}
	if err := i.deleteObsolete(ctx); err != nil {
		return err
	}
	servers := slices.DeleteFunc(slices.Clone(i.objects.components), func(object client.Object) bool {
		return !slices.Contains([]string{i.Release + "-" + aggregated, i.Release + "-" + webhook}, object.GetName())
	})
	return i.awaitReady(ctx, servers...)
}

// Names of components without their prefix.
const (
	aggregated = "aggregated-apiserver"
	webhook    = "webhook"
)

// registerServers applies the webhook configurations and APIServices, and waits until the aggregated APIs
// are available.
func (i *Installer) registerServers(ctx context.Context) error {
	_, objects, err := i.controlPlaneObjects(rendering.ControlPlane{
		Webhook:    i.webhookURL(),
		APIServers: map[string]rendering.Address{"karmada-" + aggregated: {Host: i.serviceHost(aggregated), Port: aggregatedPort}},
	})
	if err != nil {
		return err
	}
	if err := i.applyKarmada(ctx, objects...); err != nil {
		return err
	}
	registered, err := i.registerSearch(ctx)
	if err != nil {
		return err
	}
	return AwaitAPIServices(ctx, i.karmada, availableTimeout, APIServiceNames(append(objects, registered...))...)
}

// awaitComponents waits for all components and records the completed installation.
func (i *Installer) awaitComponents(ctx context.Context) error {
	if err := i.awaitReady(ctx, i.objects.components...); err != nil {
		return err
	}
	return i.complete(ctx)
}

// applyKarmada applies objects to the control plane and counts the written ones.
func (i *Installer) applyKarmada(ctx context.Context, objects ...client.Object) error {
	written, err := Apply(ctx, i.karmada, objects...)
	i.written += written
	return err
}

// search is karmada-search's key in the chart values and its name without prefix.
const search = "search"

// searchService is the name of karmada-search's Service in the control plane.
const searchService = "karmada-search"

// registerSearch registers karmada-search if the values contain it, and removes its earlier registration
// otherwise. It keeps a registration by the addon command. It returns the objects that it applied.
func (i *Installer) registerSearch(ctx context.Context) ([]client.Object, error) {
	objects, err := ServerObjects(i.Installation, searchService, rendering.Address{Host: i.serviceHost(search), Port: aggregatedPort},
		i.files["ca.crt"])
	if err != nil {
		return nil, err
	}
	karmada, err := client.New(i.karmada, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return nil, fmt.Errorf("creating a client of %s: %w", KarmadaName, err)
	}
	applier := Applier{API: karmada, Installer: InstallationManager, Cluster: KarmadaName, Progressf: i.Progressf}
	if slices.Contains(i.settings.Components, search) {
		written, err := applier.Apply(ctx, objects...)
		i.written += written
		return objects, err
	}
	for _, object := range objects {
		var foreign *ForeignError
		err := applier.VerifyOwner(ctx, object)
		if errors.As(err, &foreign) {
			continue
		}
		if err == nil {
			err = applier.Delete(ctx, object)
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}

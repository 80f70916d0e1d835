package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/controllers/certrotation"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/enroll"
)

// registerBackoffBase and registerBackoffMax are the bounds of the backoff between attempts to
// register. Only Forbidden errors increase the delay, because the permissions may never be granted.
const (
	registerBackoffBase = 2 * time.Second
	registerBackoffMax  = time.Minute
)

// agent contains the clients for both API servers.
type agent struct {
	karmada *connection
	// clusters reads the Clusters of the control plane. While the control plane is unavailable, its
	// requests wait.
	clusters client.Reader
	// member is the client configuration for the cluster.
	member  *rest.Config
	cluster enroll.Enrollment
	options programs.HostOptions
	// component has the controllers of the agent.
	component programs.Component
	// lease is the Lease of the leader election. It is nil until the controllers are started for
	// the first time.
	lease *programs.Lease
}

// newAgent creates the clients for both API servers.
func (o *Options) newAgent() (*agent, error) {
	local, err := o.Member.Config(programs.Agent)
	if err != nil {
		return nil, fmt.Errorf("loading the client configuration of the cluster: %w", err)
	}
	qps, burst := o.Rate.Limit()
	karmada, err := newConnection(o.Kubeconfig, o.Context, qps, burst)
	if err != nil {
		return nil, err
	}
	member, err := newSingleKindClient(local, "the cluster", corev1.AddToScheme, corev1.SchemeGroupVersion.WithKind("Secret"),
		meta.RESTScopeNamespace)
	if err != nil {
		return nil, err
	}
	clusters, err := newSingleKindClient(karmada.waitingConfig, "the control plane", clusterv1alpha1.AddToScheme,
		clusterv1alpha1.GroupVersion.WithKind(clusterv1alpha1.ResourceKindCluster), meta.RESTScopeRoot)
	if err != nil {
		return nil, err
	}
	cluster, err := o.enrollment()
	if err != nil {
		return nil, err
	}
	own := *o
	a := &agent{karmada: karmada, clusters: clusters, member: local, cluster: cluster, options: o.hostOptions(), component: own.Component()}
	a.cluster.Karmada, a.cluster.Member = karmada.directConfig, local
	rotation := &own.Rotation
	rotation.Member, rotation.Context = member, o.Context
	rotation.OnRenewed = func(ctx context.Context, kubeconfig []byte) {
		if err := karmada.update(ctx, kubeconfig, "certificate rotation"); err != nil {
			klog.FromContext(ctx).Error(err, "Keeping the credentials for the control plane")
		}
	}
	secretKey := types.NamespacedName{Namespace: rotation.Namespace, Name: certrotation.SecretName}
	karmada.readSecret = func(ctx context.Context) ([]byte, error) {
		secret := &corev1.Secret{}
		if err := member.Get(ctx, secretKey, secret); err != nil {
			return nil, err
		}
		return secret.Data[certrotation.SecretKey], nil
	}
	return a, nil
}

// newSingleKindClient returns a client for one kind. It sends no discovery requests.
func newSingleKindClient(config *rest.Config, server string, add func(*runtime.Scheme) error, kind schema.GroupVersionKind,
	scope meta.RESTScope) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := add(scheme); err != nil {
		return nil, fmt.Errorf("registering types: %w", err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(kind, scope)
	result, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("making a client of %s: %w", server, err)
	}
	return result, nil
}

// register registers the cluster as soon as both API servers respond. It returns nil if ctx ends
// before that.
func (a *agent) register(ctx context.Context) (*clusterv1alpha1.Cluster, error) {
	logger := klog.FromContext(ctx)
	a.cluster.Log = func(format string, args ...any) { logger.Info(fmt.Sprintf(format, args...)) }
	loggedReason, delay := "", registerBackoffBase
	for {
		registered, err := a.tryRegister(ctx)
		switch {
		case err == nil:
			return registered, nil
		case ctx.Err() != nil:
			return nil, nil //nolint:nilerr // a program that is stopped while it waits ends without an error
		case enroll.IsPermanentError(err):
			return nil, err
		}
		if !apierrors.IsForbidden(err) {
			delay = registerBackoffBase
		}
		if text := err.Error(); text != loggedReason {
			logger.Info("Waiting to register", "cluster", a.cluster.Name, "reason", text)
			loggedReason = text
		}
		select {
		case <-ctx.Done():
			return nil, nil
		case <-a.karmada.currentIdentity().replaced:
			delay = registerBackoffBase
		case <-time.After(delay):
			delay = min(2*delay, registerBackoffMax)
		}
	}
}

func (a *agent) tryRegister(ctx context.Context) (*clusterv1alpha1.Cluster, error) {
	if err := programs.VerifyPrerequisites(ctx, a.karmada.directConfig, a.component); err != nil {
		return nil, err
	}
	return a.cluster.Run(ctx)
}

// memberConfig returns a function that returns the client configuration for the cluster. The function
// returns an error if the Cluster now belongs to another cluster.
func (a *agent) memberConfig(id string) func(*clusterv1alpha1.Cluster) (*rest.Config, error) {
	return func(cluster *clusterv1alpha1.Cluster) (*rest.Config, error) {
		if err := verifyClusterID(cluster, id); err != nil {
			return nil, err
		}
		return a.member, nil
	}
}

// verifyClusterID returns an error if the Cluster belongs to another cluster.
func verifyClusterID(cluster *clusterv1alpha1.Cluster, id string) error {
	if cluster.Spec.ID == id {
		return nil
	}
	return &registration.RegisteredError{Name: cluster.Name, ID: id, Existing: *cluster}
}

// isRegisteredByOther reports whether an error means that the Cluster belongs to another cluster.
func isRegisteredByOther(err error) bool {
	var registered *registration.RegisteredError
	return errors.As(err, &registered)
}

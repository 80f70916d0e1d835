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

// registerPause lies between two tries to register, and deniedLimit bounds the
// longer ones of an agent without rights, which it may never get.
const (
	registerPause = 2 * time.Second
	deniedLimit   = time.Minute
)

// agent is what an agent has once it knows both sides.
type agent struct {
	karmada *connection
	// clusters reads the Clusters of the control plane, which is waited for.
	clusters client.Reader
	// local leads to the cluster.
	local   *rest.Config
	cluster enroll.Agent
	host    programs.HostOptions
	// lease is that of the election, nil before the first life.
	lease *programs.Lease
}

// agent makes both sides of the options.
func (o *Options) agent() (*agent, error) {
	local, err := o.Member.Config(programs.Agent)
	if err != nil {
		return nil, fmt.Errorf("reaching the cluster: %w", err)
	}
	qps, burst := o.Rate.Limit()
	karmada, err := connect(o.Kubeconfig, o.Context, qps, burst)
	if err != nil {
		return nil, err
	}
	member, err := secretsOf(local)
	if err != nil {
		return nil, err
	}
	clusters, err := clustersOf(karmada.waiting)
	if err != nil {
		return nil, err
	}
	a := &agent{karmada: karmada, clusters: clusters, local: local, cluster: o.Cluster, host: o.host()}
	a.cluster.Karmada, a.cluster.Member = karmada.plain, local
	rotation := &a.host.Settings.Agent.Rotation
	rotation.Member, rotation.Context = member, o.Context
	rotation.Renewed = func(kubeconfig []byte) {
		if err := karmada.take(context.Background(), kubeconfig, "its rotation"); err != nil {
			klog.Background().Error(err, "Keeping the credentials for the control plane")
		}
	}
	from := types.NamespacedName{Namespace: rotation.Namespace, Name: certrotation.SecretName}
	karmada.secret = func(ctx context.Context) ([]byte, error) {
		secret := &corev1.Secret{}
		if err := member.Get(ctx, from, secret); err != nil {
			return nil, err
		}
		return secret.Data[certrotation.SecretKey], nil
	}
	return a, nil
}

// secretsOf reads and writes single Secrets of the cluster.
func secretsOf(local *rest.Config) (client.Client, error) {
	return clientOf(local, "the cluster", corev1.AddToScheme, corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
}

func clustersOf(karmada *rest.Config) (client.Reader, error) {
	return clientOf(karmada, "the control plane", clusterv1alpha1.AddToScheme, clusterv1alpha1.GroupVersion.WithKind(clusterv1alpha1.ResourceKindCluster), meta.RESTScopeRoot)
}

// clientOf is a client for one kind, which it does not ask about.
func clientOf(config *rest.Config, whose string, add func(*runtime.Scheme) error, kind schema.GroupVersionKind, scope meta.RESTScope) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := add(scheme); err != nil {
		return nil, fmt.Errorf("registering types: %w", err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(kind, scope)
	made, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("making a client of %s: %w", whose, err)
	}
	return made, nil
}

func keyOf(cluster string) types.NamespacedName { return types.NamespacedName{Name: cluster} }

// register registers the cluster, as soon as both sides answer. It returns nothing
// when ctx ends before.
func (a *agent) register(ctx context.Context) (*clusterv1alpha1.Cluster, error) {
	logger := klog.FromContext(ctx)
	a.cluster.Log = func(format string, args ...any) { logger.Info(fmt.Sprintf(format, args...)) }
	told, pause := "", registerPause
	for {
		registered, err := a.tryRegister(ctx)
		switch {
		case err == nil:
			return registered, nil
		case ctx.Err() != nil:
			return nil, nil //nolint:nilerr // whoever ends a program that waits does not care for what
		case enroll.Final(err):
			return nil, err
		}
		if !apierrors.IsForbidden(err) {
			pause = registerPause
		}
		if text := err.Error(); text != told {
			logger.Info("Waiting to register", "cluster", a.cluster.Name, "reason", text)
			told = text
		}
		select {
		case <-ctx.Done():
			return nil, nil
		case <-a.karmada.get().replaced:
			pause = registerPause
		case <-time.After(pause):
			pause = min(2*pause, deniedLimit)
		}
	}
}

func (a *agent) tryRegister(ctx context.Context) (*clusterv1alpha1.Cluster, error) {
	if err := programs.Served(ctx, a.karmada.plain, programs.AgentComponent()); err != nil {
		return nil, err
	}
	return a.cluster.Run(ctx)
}

// only leads the controllers to the cluster, as long as its Cluster is it.
func (a *agent) only(id string) func(*clusterv1alpha1.Cluster) (*rest.Config, error) {
	return func(cluster *clusterv1alpha1.Cluster) (*rest.Config, error) {
		if foreign := foreign(cluster, id); foreign != nil {
			return nil, foreign
		}
		return a.local, nil
	}
}

// foreign is why a Cluster is not the one of the agent, nil if it is.
func foreign(cluster *clusterv1alpha1.Cluster, id string) error {
	if cluster.Spec.ID == id {
		return nil
	}
	return &registration.RegisteredError{Name: cluster.Name, ID: id, By: *cluster}
}

// isForeign tells that the agent has no Cluster any more.
func isForeign(err error) bool {
	var taken *registration.RegisteredError
	return errors.As(err, &taken)
}

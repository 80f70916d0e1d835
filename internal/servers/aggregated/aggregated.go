// Package aggregated serves the Cluster API and the proxy to member clusters, behind the aggregation
// layer of the Karmada API server. It stores Clusters in etcd.
//
// A server can share a process with another API server, as package extensionserver describes. The
// only shared state is the feature gate of the API server library, which changes only for gates
// named in --feature-gates.
package aggregated

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/agentaddress"
	"karmada.io/karmada/internal/access/memberproxy"
	"karmada.io/karmada/internal/extensionserver"
)

// sweepPeriod is the interval at which the server closes connections to clusters that another
// replica of the server has deleted.
const sweepPeriod = 30 * time.Second

// Server is an aggregated API server that is ready to run.
type Server struct {
	*extensionserver.Server
}

// New returns a server with an open listener. The options must be valid and may contain an open
// listener. The listener and the connections to etcd stay open until Run ends. ctx ends only the
// requests that New itself sends.
func New(ctx context.Context, o *Options) (*Server, error) {
	if err := o.Complete(); err != nil {
		return nil, err
	}
	config, karmada, err := o.NewConfig(ctx, o.api())
	if err != nil {
		return nil, err
	}
	sources, err := o.newSources(config, karmada)
	if err != nil {
		return nil, err
	}
	server, err := extensionserver.NewServer(o.api(), config)
	if err != nil {
		return nil, err
	}
	s := &Server{server}
	if err := s.installAPI(o, config, sources, karmada); err != nil {
		s.Generic.Destroy()
		return nil, err
	}
	return s, nil
}

// newSources returns the functions with which the proxy reads Secrets and Works in the Karmada API server.
func (o *Options) newSources(config *genericapiserver.RecommendedConfig, karmada kubernetes.Interface) (memberproxy.Sources, error) {
	sources := memberproxy.Sources{Karmada: config.ClientConfig, Budgets: o.Budgets, AgentAddresses: o.Agents.Addresses, Secret: o.Secrets}
	if o.Secrets != nil {
		return sources, nil
	}
	cached, fresh, start := memberproxy.NewSecretGetters(karmada)
	sources.Secret, sources.FreshSecret, sources.Work = cached, fresh, memberproxy.NewWorkGetter(karmada)
	err := config.AddPostStartHook("follow-cluster-credentials", func(hook genericapiserver.PostStartHookContext) error {
		start(hook.Context)
		return nil
	})
	if err != nil {
		return sources, fmt.Errorf("adding the hook that watches the credentials of clusters: %w", err)
	}
	return sources, nil
}

// karmadaHost returns the address of the Karmada API server, or an empty string if there is none.
func karmadaHost(config *genericapiserver.RecommendedConfig) string {
	if config.ClientConfig == nil {
		return ""
	}
	return config.ClientConfig.Host
}

// installAPI installs the API group.
func (s *Server) installAPI(o *Options, config *genericapiserver.RecommendedConfig, sources memberproxy.Sources,
	karmada kubernetes.Interface) error {
	storage, err := newStorages(o.scheme, config.RESTOptionsGetter, storageRules{
		ResourceModels: o.resourceModelsEnabled,
		Now:            metav1.Now,
		Authorizer:     config.Authorization.Authorizer,
		Addresses:      agentaddress.NewGuard(o.Agents.Addresses, karmadaHost(config)).StaticRules,
		Scope:          newScopeReader(karmada),

		RequireApproval: o.Agents.RequireApproval,
	})
	if err != nil {
		return fmt.Errorf("opening storage in etcd at %s, see --etcd-servers: %w",
			strings.Join(o.Server.Etcd.StorageConfig.Transport.ServerList, ","), err)
	}
	sources.Cluster, sources.Clusters = newClusterGetter(storage.Cluster.Store), newClusterLister(storage.Cluster.Store)
	members, err := memberproxy.New(sources)
	if err != nil {
		return err
	}
	storage.Cluster.AfterDelete = func(obj runtime.Object, _ *metav1.DeleteOptions) {
		if cluster, ok := obj.(*clusterv1alpha1.Cluster); ok {
			members.RemoveMember(cluster.Name)
		}
	}
	err = s.Generic.AddPostStartHook("sweep-connections", func(hook genericapiserver.PostStartHookContext) error {
		go wait.UntilWithContext(hook.Context, members.RemoveDeletedMembers, sweepPeriod)
		return nil
	})
	if err != nil {
		return fmt.Errorf("adding the hook that closes connections to deleted clusters: %w", err)
	}
	group := genericapiserver.NewDefaultAPIGroupInfo(clusterv1alpha1.GroupName, o.scheme, runtime.NewParameterCodec(o.scheme), o.codecs)
	group.VersionedResourcesStorageMap[clusterv1alpha1.GroupVersion.Version] = map[string]rest.Storage{
		"clusters":        storage.Cluster,
		"clusters/status": storage.Status,
		"clusters/proxy":  members,
	}
	if err := s.Generic.InstallAPIGroup(&group); err != nil {
		return fmt.Errorf("serving %s: %w", clusterv1alpha1.GroupName, err)
	}
	return nil
}

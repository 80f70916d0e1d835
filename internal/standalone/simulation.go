package standalone

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// newSimulation returns a manager that simulates volumes and addresses in a cluster, and serves Pods and nodes
// to metrics. cluster is the client configuration of an administrator.
func newSimulation(ctx context.Context, cluster *rest.Config, metrics *simulatedMetrics) (manager.Manager, error) {
	skipNameValidation := true
	mgr, err := manager.New(cluster, manager.Options{
		Scheme: scheme.Scheme, Logger: klog.Background(), Metrics: metricsserver.Options{BindAddress: "0"},
		// Several clusters may run in one process.
		Controller: config.Controller{SkipNameValidation: &skipNameValidation},
		Cache: cache.Options{
			DefaultTransform: cache.TransformStripManagedFields(),
			ByObject:         map[client.Object]cache.ByObject{&corev1.Pod{}: {Transform: keepRequests}},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("creating the simulation: %w", err)
	}
	if err := addVolumes(ctx, mgr); err != nil {
		return nil, err
	}
	if err := addAddresses(mgr); err != nil {
		return nil, err
	}
	return mgr, metrics.read(ctx, mgr.GetCache())
}

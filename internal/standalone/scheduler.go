package standalone

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-base/configz"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	schedulerconfig "k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
)

// schedulerConfigz is the name under which kube-scheduler registers its configuration.
const schedulerConfigz = "componentconfig"

// startScheduler runs kube-scheduler.
func startScheduler(ctx context.Context, access inProcessAccess) (*server, error) {
	s := options.NewOptions()
	args := append([]string{"--kubeconfig=" + access.kubeconfig, "--leader-elect=false", "--secure-port=0"}, unthrottledFlags...)
	if err := parseFlags("kube-scheduler", *s.Flags, args); err != nil {
		return nil, err
	}
	defaults, err := latest.Default()
	if err != nil {
		return nil, fmt.Errorf("creating the options of kube-scheduler: %w", err)
	}
	s.ComponentConfig = defaults
	config, err := s.Config(ctx)
	if err != nil {
		return nil, fmt.Errorf("completing the options of kube-scheduler: %w", err)
	}
	if err := setSchedulerClients(ctx, config, access); err != nil {
		return nil, fmt.Errorf("creating the clients of kube-scheduler: %w", err)
	}
	completed := config.Complete()
	created, err := newScheduler(ctx, &completed)
	if err != nil {
		return nil, fmt.Errorf("creating kube-scheduler: %w", err)
	}
	return startServer(ctx, "kube-scheduler", func(ctx context.Context) error {
		defer configz.Delete(schedulerConfigz)
		return app.Run(ctx, &completed, created)
	}), nil
}

// setSchedulerClients replaces the clients of a scheduler with in-process clients.
func setSchedulerClients(ctx context.Context, config *schedulerconfig.Config, access inProcessAccess) error {
	access.useTransport(config.KubeConfig)
	client, err := kubernetes.NewForConfig(rest.AddUserAgent(config.KubeConfig, "scheduler"))
	if err != nil {
		return err
	}
	dynamicClient, err := dynamic.NewForConfig(config.KubeConfig)
	if err != nil {
		return err
	}
	config.Client = client
	config.EventBroadcaster = events.NewEventBroadcasterAdapterWithContext(ctx, client)
	config.InformerFactory = scheduler.NewInformerFactory(client, 0)
	config.DynInformerFactory = dynamicinformer.NewFilteredDynamicSharedInformerFactory(dynamicClient, 0, corev1.NamespaceAll, nil)
	return nil
}

// newScheduler creates the scheduler in the same way as the kube-scheduler program.
func newScheduler(ctx context.Context, config *schedulerconfig.CompletedConfig) (*scheduler.Scheduler, error) {
	settings := config.ComponentConfig
	return scheduler.New(ctx, config.Client, config.InformerFactory, config.DynInformerFactory,
		func(name string) events.EventRecorderLogger { return config.EventBroadcaster.NewRecorder(name) },
		scheduler.WithComponentConfigVersion(settings.APIVersion),
		scheduler.WithKubeConfig(config.KubeConfig),
		scheduler.WithProfiles(settings.Profiles...),
		scheduler.WithPercentageOfNodesToScore(settings.PercentageOfNodesToScore),
		scheduler.WithPodMaxBackoffSeconds(settings.PodMaxBackoffSeconds),
		scheduler.WithPodInitialBackoffSeconds(settings.PodInitialBackoffSeconds),
		scheduler.WithPodMaxInUnschedulablePodsDuration(config.PodMaxInUnschedulablePodsDuration),
		scheduler.WithParallelism(settings.Parallelism),
	)
}

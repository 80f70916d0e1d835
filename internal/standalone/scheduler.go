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

// schedulerConfigz is the name under which kube-scheduler shows its configuration.
const schedulerConfigz = "componentconfig"

// startScheduler runs kube-scheduler.
func startScheduler(ctx context.Context, in insider) (*server, error) {
	s := options.NewOptions()
	args := append([]string{"--kubeconfig=" + in.kubeconfig, "--leader-elect=false", "--secure-port=0"}, unthrottled...)
	if err := parse("kube-scheduler", *s.Flags, args); err != nil {
		return nil, err
	}
	defaults, err := latest.Default()
	if err != nil {
		return nil, fmt.Errorf("making options of kube-scheduler: %w", err)
	}
	s.ComponentConfig = defaults
	config, err := s.Config(ctx)
	if err != nil {
		return nil, fmt.Errorf("completing options of kube-scheduler: %w", err)
	}
	if err := seatScheduler(ctx, config, in); err != nil {
		return nil, fmt.Errorf("making clients of kube-scheduler: %w", err)
	}
	completed := config.Complete()
	made, err := newScheduler(ctx, &completed)
	if err != nil {
		return nil, fmt.Errorf("making kube-scheduler: %w", err)
	}
	return start(ctx, "kube-scheduler", func(ctx context.Context) error {
		defer configz.Delete(schedulerConfigz)
		return app.Run(ctx, &completed, made)
	}), nil
}

// seatScheduler replaces the clients of a scheduler by those of this process.
func seatScheduler(ctx context.Context, config *schedulerconfig.Config, in insider) error {
	in.enter(config.KubeConfig)
	client, err := kubernetes.NewForConfig(rest.AddUserAgent(config.KubeConfig, "scheduler"))
	if err != nil {
		return err
	}
	dynamically, err := dynamic.NewForConfig(config.KubeConfig)
	if err != nil {
		return err
	}
	config.Client = client
	config.EventBroadcaster = events.NewEventBroadcasterAdapterWithContext(ctx, client)
	config.InformerFactory = scheduler.NewInformerFactory(client, 0)
	config.DynInformerFactory = dynamicinformer.NewFilteredDynamicSharedInformerFactory(dynamically, 0, corev1.NamespaceAll, nil)
	return nil
}

// newScheduler does what the program does with its configuration.
func newScheduler(ctx context.Context, config *schedulerconfig.CompletedConfig) (*scheduler.Scheduler, error) {
	told := config.ComponentConfig
	return scheduler.New(ctx, config.Client, config.InformerFactory, config.DynInformerFactory,
		func(name string) events.EventRecorderLogger { return config.EventBroadcaster.NewRecorder(name) },
		scheduler.WithComponentConfigVersion(told.APIVersion),
		scheduler.WithKubeConfig(config.KubeConfig),
		scheduler.WithProfiles(told.Profiles...),
		scheduler.WithPercentageOfNodesToScore(told.PercentageOfNodesToScore),
		scheduler.WithPodMaxBackoffSeconds(told.PodMaxBackoffSeconds),
		scheduler.WithPodInitialBackoffSeconds(told.PodInitialBackoffSeconds),
		scheduler.WithPodMaxInUnschedulablePodsDuration(config.PodMaxInUnschedulablePodsDuration),
		scheduler.WithParallelism(told.Parallelism),
	)
}

package multicall

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/flagz"
	"k8s.io/client-go/rest"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	"k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/term"
	"k8s.io/component-base/version/verflag"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"

	"karmada.io/karmada/internal/extensionserver"
)

// karmadaAPIServerName is the program's name.
const karmadaAPIServerName = "karmada-apiserver"

// newKarmadaAPIServerCommand returns the command karmada-apiserver: kube-apiserver with flags that run
// Karmada's admission and the Cluster API in its process. It then needs no Pod of karmada-webhook or
// karmada-aggregated-apiserver, so no admission request can fail because such a Pod is down. Without these
// flags, the program is kube-apiserver.
//
// Replicas need not agree on anything, because each of them applies the same rules and stores all state in
// the same etcd. Replicas with and without the flags may serve the same control plane, because the objects
// that register webhooks and the Cluster API are the same; a replica with the flags serves these requests
// itself.
//
// The command handles signals, so a process may create it only once. The steps before a run are those of
// kube-apiserver's command.
func newKarmadaAPIServerCommand() *cobra.Command {
	server, karmada := options.NewServerRunOptions(), newOptions()
	ctx := genericapiserver.SetupSignalContext()
	registry := server.GenericServerRunOptions.ComponentGlobalsRegistry
	gate := registry.FeatureGateFor(compatibility.DefaultKubeComponent)
	cmd := &cobra.Command{
		Use: karmadaAPIServerName,
		Long: "The API server of a Karmada control plane. It is kube-apiserver, with flags that run the admission " +
			"and the Cluster API of Karmada in its process.",
		SilenceUsage: true,
		Args:         noArguments,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if err := registry.Set(); err != nil {
				return fmt.Errorf("setting feature gates: %w", err)
			}
			rest.SetDefaultWarningHandler(rest.NoWarnings{})
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			verflag.PrintAndExitIfRequested()
			if err := logsapi.ValidateAndApply(server.Logs, gate); err != nil {
				return fmt.Errorf("configuring the log: %w", err)
			}
			cliflag.PrintFlags(cmd.Flags())
			completed, err := complete(ctx, server, karmada)
			if err != nil {
				return err
			}
			if mutable, ok := gate.(featuregate.MutableFeatureGate); ok {
				mutable.AddMetrics()
			}
			registry.AddMetrics()
			return karmada.run(ctx, completed)
		},
	}
	cmd.SetContext(ctx)
	addFlags(cmd, server, karmada)
	return cmd
}

func noArguments(_ *cobra.Command, args []string) error {
	for _, arg := range args {
		if arg != "" {
			return fmt.Errorf("unexpected argument %q: %s accepts only flags", arg, karmadaAPIServerName)
		}
	}
	return nil
}

func addFlags(cmd *cobra.Command, server *options.ServerRunOptions, karmada *karmadaOptions) {
	sets := server.Flags()
	karmada.addFlags(sets.FlagSet("Karmada"))
	server.Flagz = flagz.NamedFlagSetsReader{FlagSets: sets}
	verflag.AddFlags(sets.FlagSet("global"))
	globalflag.AddGlobalFlags(sets.FlagSet("global"), cmd.Name(), logs.SkipLoggingConfigurationFlags())
	for _, set := range sets.FlagSets {
		cmd.Flags().AddFlagSet(set)
	}
	columns, _, _ := term.TerminalSize(cmd.OutOrStdout())
	cliflag.SetUsageAndHelpFunc(cmd, sets, columns)
}

// complete validates all flags and adds the admission of Karmada.
func complete(ctx context.Context, server *options.ServerRunOptions, karmada *karmadaOptions) (options.CompletedOptions, error) {
	if err := karmada.validate(); err != nil {
		return options.CompletedOptions{}, err
	}
	karmada.addAdmission(server.Admission.GenericAdmission)
	completed, err := server.Complete(ctx)
	if err != nil {
		return options.CompletedOptions{}, fmt.Errorf("completing the flags: %w", err)
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return options.CompletedOptions{}, utilerrors.NewAggregate(errs)
	}
	return completed, nil
}

// run serves until ctx ends, or until one of the servers fails.
func (k *karmadaOptions) run(ctx context.Context, completed options.CompletedOptions) error {
	if !k.Admission && !k.ClusterAPI {
		return app.Run(ctx, completed) // exactly kube-apiserver
	}
	config, err := app.NewConfig(completed)
	if err != nil {
		return fmt.Errorf("configuring the API server: %w", err)
	}
	published := &config.KubeAPIs.ControlPlane.ClusterAuthenticationInfo
	extensionserver.PollCertificates(config.KubeAPIs.ControlPlane.Generic.SecureServing, &published.ClientCA, &published.RequestHeaderCA)
	if err := k.wrapConversion(config); err != nil { //nolint:contextcheck // requests share the lists of the reviewer
		return err
	}
	clusters, err := k.newClusterAPI(ctx, config)
	if err != nil {
		return err
	}
	completedConfig, err := config.Complete()
	if err != nil {
		return fmt.Errorf("completing the configuration of the API server: %w", err)
	}
	chain, err := app.CreateServerChain(completedConfig)
	if err != nil {
		return fmt.Errorf("creating the API server: %w", err)
	}
	prepared, err := chain.PrepareRun()
	if err != nil {
		return fmt.Errorf("preparing the API server: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return prepared.Run(ctx) })
	if clusters != nil {
		group.Go(func() error { return clusters.run(ctx) })
	}
	return group.Wait()
}

// validate returns every mistake in the flags of Karmada.
func (k *karmadaOptions) validate() error {
	var errs []error
	for _, host := range k.AdmissionHosts {
		if host == "" || strings.ContainsAny(host, ":/") {
			errs = append(errs, fmt.Errorf("--karmada-admission-hosts %q: must be a DNS name without a scheme, port or path", host))
		}
	}
	if (k.ClusterAPICert == "") != (k.ClusterAPIKey == "") {
		errs = append(errs, errors.New("--karmada-aggregated-api-cert-file and --karmada-aggregated-api-key-file must be set together"))
	}
	return errors.Join(errs...)
}

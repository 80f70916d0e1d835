package command

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"karmada.io/karmada/internal/version"
)

// RegisterBuildInfo registers the metric karmada_build_info. Its value is always 1 and its
// labels contain the version of the program. It may be called more than once for a registry.
func RegisterBuildInfo(registry prometheus.Registerer) error {
	info := version.Get()
	gauge := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "karmada_build_info",
		Help: "The version of this program; the value is always 1.",
		ConstLabels: prometheus.Labels{
			"git_version": info.GitVersion, "git_commit": info.GitCommit, "git_short_commit": info.GitShortCommit,
			"git_tree_state": info.GitTreeState, "build_date": info.BuildDate,
			"go_version": info.GoVersion, "compiler": info.Compiler, "platform": info.Platform,
		},
	}, func() float64 { return 1 })
	var taken prometheus.AlreadyRegisteredError
	if err := registry.Register(gauge); err != nil && !errors.As(err, &taken) {
		return fmt.Errorf("registering the version as a metric: %w", err)
	}
	return nil
}

package standalone

import (
	"runtime/debug"
	"strings"

	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/component-base/compatibility"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

// tellVersion has an API server tell clients the version of Kubernetes that is compiled
// in. A build without the Makefile stamps none, and every cluster would be v0.0.0.
func tellVersion(config *app.Config) {
	for _, generic := range []*compatibility.EffectiveVersion{
		&config.Aggregator.GenericConfig.EffectiveVersion, &config.KubeAPIs.ControlPlane.Generic.EffectiveVersion,
		&config.ApiExtensions.GenericConfig.EffectiveVersion,
	} {
		*generic = compiledVersion{*generic}
	}
}

// compiledVersion is a version that knows its module.
type compiledVersion struct{ compatibility.EffectiveVersion }

// Info implements compatibility.EffectiveVersion.
func (v compiledVersion) Info() *apiversion.Info {
	info := v.EffectiveVersion.Info()
	if info == nil || !strings.HasPrefix(info.GitVersion, "v0.0.0") {
		return info
	}
	if build, ok := debug.ReadBuildInfo(); ok {
		info.GitVersion = moduleVersion(build, "k8s.io/kubernetes", info.GitVersion)
	}
	return info
}

// moduleVersion is the version in which a build holds a module, else otherwise.
func moduleVersion(build *debug.BuildInfo, module, otherwise string) string {
	for _, dep := range build.Deps {
		if dep.Path == module {
			return dep.Version
		}
	}
	return otherwise
}

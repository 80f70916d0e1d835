package standalone

import (
	"runtime/debug"
	"strings"

	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/component-base/compatibility"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

// setCompiledVersion makes an API server report the version of Kubernetes that is compiled in.
// Only the Makefile of Kubernetes sets the version in a build. Without setCompiledVersion, every
// cluster would report v0.0.0.
func setCompiledVersion(config *app.Config) {
	for _, generic := range []*compatibility.EffectiveVersion{
		&config.Aggregator.GenericConfig.EffectiveVersion, &config.KubeAPIs.ControlPlane.Generic.EffectiveVersion,
		&config.ApiExtensions.GenericConfig.EffectiveVersion,
	} {
		*generic = compiledVersion{*generic}
	}
}

// compiledVersion reports the version of the k8s.io/kubernetes module.
type compiledVersion struct{ compatibility.EffectiveVersion }

// Info implements compatibility.EffectiveVersion.
func (c compiledVersion) Info() *apiversion.Info {
	info := c.EffectiveVersion.Info()
	if info == nil || !strings.HasPrefix(info.GitVersion, "v0.0.0") {
		return info
	}
	if build, ok := debug.ReadBuildInfo(); ok {
		info.GitVersion = moduleVersion(build, "k8s.io/kubernetes", info.GitVersion)
	}
	return info
}

// moduleVersion returns the version of a module in a build. If the build does not contain the
// module, it returns a default.
func moduleVersion(build *debug.BuildInfo, module, defaultVersion string) string {
	for _, dep := range build.Deps {
		if dep.Path == module {
			return dep.Version
		}
	}
	return defaultVersion
}

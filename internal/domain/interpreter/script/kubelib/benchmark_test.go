package kubelib_test

import (
	"testing"

	lua "github.com/yuin/gopher-lua"

	"karmada.io/karmada/internal/domain/interpreter/script/kubelib"
	"karmada.io/karmada/internal/domain/interpreter/script/stdlib/stdlibtest"
)

const simpleTemplate = `{spec = {nodeSelector = {disk = "ssd"}, containers = {{name = "web", resources = {requests = {cpu = "100m", memory = "64Mi"}}}}}}`

func BenchmarkPodRequirements(b *testing.B) {
	b.Run("simple", func(b *testing.B) { benchmarkPodRequirements(b, simpleTemplate) })
	b.Run("full", func(b *testing.B) { benchmarkPodRequirements(b, fullTemplate) })
}

func benchmarkPodRequirements(b *testing.B, template string) {
	_, state := stdlibtest.New()
	defer state.Close()
	state.SetGlobal("kube", state.SetFuncs(state.NewTable(), kubelib.Functions(false)))
	results, err := stdlibtest.Run(state, "local t = "+template+" return function() return kube.accuratePodRequirements(t) end")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := state.CallByParam(lua.P{Fn: results[0], NRet: 1, Protect: true}); err != nil {
			b.Fatal(err)
		}
		state.SetTop(0)
	}
}

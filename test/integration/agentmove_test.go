package integration

import (
	"testing"
	"time"
)

func TestAgentFollowsControlPlaneAddressChange(t *testing.T) {
	env := joining(t)
	p := newPullCluster(t, env, "pull-moves")
	g := newTCPProxy(t, env.Config.Host)
	p.writeKubeconfig(t, g.URL(), time.Hour)
	running := p.startAgent(t)
	p.awaitReady(t)
	template := p.deploy(t, env.Namespace(t), "web")

	g.stop()
	p.writeKubeconfig(t, env.Config.Host, time.Hour)
	p.scaleAndMeasure(t, template, 5)
	select {
	case <-running.done:
		t.Errorf("the agent ended with %v", running.err)
	default:
	}
}

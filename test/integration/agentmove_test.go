package integration

import (
	"testing"
	"time"
)

func TestAnAgentFollowsItsControlPlaneToAnotherAddress(t *testing.T) {
	env := alone(t)
	p := newPulled(t, env, "pull-moves")
	g := newGate(t, env.Config.Host)
	p.write(t, g.URL(), time.Hour)
	running := p.run(t)
	p.awaitReady(t)
	template := p.deploy(t, env.Namespace(t), "web")

	g.end()
	p.write(t, env.Config.Host, time.Hour)
	p.scale(t, template, 5)
	select {
	case <-running.ended:
		t.Errorf("the agent ended with %v", running.err)
	default:
	}
}

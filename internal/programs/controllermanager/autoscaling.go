package controllermanager

import (
	"karmada.io/karmada/internal/controllers/deploymentreplicassyncer"
	"karmada.io/karmada/internal/controllers/hpascaletargetmarker"
	"karmada.io/karmada/internal/programs"
)

func (o *Options) addHPAScaleTargetMarker(h *programs.Host) error {
	own := hpascaletargetmarker.DefaultOptions()
	own.Backoff = o.QueueBackoff()
	return hpascaletargetmarker.Add(h.Manager, h.Watches, h.Interpreter, own)
}

func (o *Options) addDeploymentReplicasSyncer(h *programs.Host) error {
	return deploymentreplicassyncer.Add(h.Manager, h.Watches, deploymentreplicassyncer.DefaultOptions())
}

package addons

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/install"
	"karmada.io/karmada/internal/install/rendering"
	"karmada.io/karmada/internal/version"
)

type values = rendering.Values

// renderAddon returns an addon's objects in the host cluster, in the order in which they are created. key is
// the addon's key in the chart values, and given are its own values. The values of the installation in the
// same namespace, such as pull secrets, apply too, unless others overrides them.
func (s *session) renderAddon(ctx context.Context, key string, given, others values) ([]client.Object, error) {
	stored, err := install.StoredValues(ctx, s.host, s.hostFlags.Namespace, rendering.DefaultRelease)
	if err != nil {
		return nil, err
	}
	// A simulated cluster needs no image, so use the local image by default.
	all := rendering.Merge(rendering.LocalImage(), values{
		"naming": values{"configPerComponent": true},
		"global": values{"commonLabels": values{clusterv1alpha1.BootstrappingLabel: clusterv1alpha1.BootstrappingApp}},
	})
	all = rendering.Merge(all, stored)
	all = rendering.Merge(all, others)
	all = rendering.Merge(all, values{"installMode": "component", "components": []any{key}, key: given})
	installation := rendering.Installation{Release: rendering.DefaultRelease, Namespace: s.hostFlags.Namespace,
		Version: version.Get().GitVersion, Values: all}
	rendered, err := installation.Host()
	if err != nil {
		return nil, err
	}
	var objects, workloads []client.Object
	for _, object := range rendered {
		if install.IsWorkload(object) {
			workloads = append(workloads, object)
			continue
		}
		objects = append(objects, object)
	}
	return append(objects, workloads...), nil
}

// componentValues returns the chart values for the addon's flags.
func (o *enableOptions) componentValues(addon string) values {
	a := o.addons[addon]
	component := values{"replicaCount": int64(a.replicas), "priorityClassName": a.priorityClass}
	switch {
	case a.image != "" && a.image != install.DefaultImage():
		repository, tag := rendering.SplitImage(a.image)
		component["image"] = values{"registry": "", "repository": repository, "tag": tag}
	case o.registry != "":
		component["image"] = values{"registry": o.registry, "repository": rendering.ImageName}
	}
	return component
}

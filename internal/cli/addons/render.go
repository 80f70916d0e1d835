package addons

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/install"
	"karmada.io/karmada/internal/install/installer"
	"karmada.io/karmada/internal/install/rendering"
	"karmada.io/karmada/internal/version"
)

type values = rendering.Values

// renderAddon returns the objects of an addon in the host cluster, in the order in which they are
// created. key is the key of the addon in the values of the chart, and given are its own values. The
// settings of the control plane in the same namespace, such as pull secrets, apply as well; others are
// values that replace them.
func (s *session) renderAddon(ctx context.Context, key string, given, others values) ([]client.Object, error) {
	stored, err := installer.StoredValues(ctx, s.host, s.hostFlags.Namespace, rendering.DefaultRelease)
	if err != nil {
		return nil, err
	}
	// An addon in a simulated cluster needs no image, so the image has a default.
	all := rendering.Merge(rendering.LocalImage(), values{
		"naming": values{"configPerComponent": true},
		"global": values{"commonLabels": values{clusterv1alpha1.BootstrappingLabel: clusterv1alpha1.BootstrappingApp}},
	})
	all = rendering.Merge(all, stored)
	all = rendering.Merge(all, others)
	all = rendering.Merge(all, values{"installMode": "component", "components": []any{key}, key: given})
	installation := rendering.Installation{Release: rendering.DefaultRelease, Namespace: s.hostFlags.Namespace, Version: version.Get().GitVersion, Values: all}
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

// componentValues returns the values that the flags of an addon set.
func (o *enableOptions) componentValues(addon string) values {
	a := o.addons[addon]
	component := values{"replicaCount": int64(a.replicas), "priorityClassName": a.priorityClass}
	switch {
	case a.image != "" && a.image != defaultImage():
		repository, tag := rendering.SplitImage(a.image)
		component["image"] = values{"registry": "", "repository": repository, "tag": tag}
	case o.registry != "":
		component["image"] = values{"registry": o.registry, "repository": rendering.ImageName}
	}
	return component
}

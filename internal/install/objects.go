package install

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/install/rendering"
)

// ControlPlaneObjects returns the objects that a control plane needs besides the CRDs, in two
// groups: the namespaces, and all other objects, which can be in these namespaces.
func ControlPlaneObjects(installation rendering.Installation, controlPlane rendering.ControlPlane) (namespaces, others []client.Object, err error) {
	objects, err := installation.ControlPlane(controlPlane)
	if err != nil {
		return nil, nil, err
	}
	for _, object := range objects {
		if object.GetKind() == "Namespace" {
			namespaces = append(namespaces, object)
			continue
		}
		others = append(others, object)
	}
	return namespaces, others, nil
}

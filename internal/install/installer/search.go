package installer

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/install"
	"karmada.io/karmada/internal/install/rendering"
)

// search is the key of karmada-search in the values of the chart. It is also the name after the prefix
// of the release.
const search = "search"

// searchService is the name of the Service of karmada-search in the control plane.
const searchService = "karmada-search"

// registerSearch registers karmada-search if the values contain it, and otherwise removes an earlier
// registration. It returns the objects that it applied. The addon of karmadactl has the same objects:
// they are kept.
func (i *Installer) registerSearch(ctx context.Context) ([]client.Object, error) {
	objects, err := install.ServerObjects(i.Installation, searchService, rendering.Address{Host: i.serviceHost(search), Port: aggregatedPort}, i.files["ca.crt"])
	if err != nil {
		return nil, err
	}
	karmada, err := client.New(i.karmada, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return nil, fmt.Errorf("creating a client of %s: %w", karmadaName, err)
	}
	applier := install.Applier{API: karmada, Installer: Name, Cluster: karmadaName, Progressf: i.Progressf}
	if i.settings.hasSearch {
		written, err := applier.Apply(ctx, objects...)
		i.written += written
		return objects, err
	}
	for _, object := range objects {
		var foreign *install.ForeignError
		err := applier.CheckOwner(ctx, object)
		if errors.As(err, &foreign) {
			continue
		}
		if err == nil {
			err = applier.Delete(ctx, object)
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}

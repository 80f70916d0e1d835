package install

import (
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karmada.io/karmada/internal/install/certificates"
	"karmada.io/karmada/internal/install/rendering"
)

// apiServerPort is the port of the API server's Service.
const apiServerPort = 5443

// chartValues are the chart values that the installation's steps read.
type chartValues struct {
	ClusterDomain   string   `json:"clusterDomain"`
	SystemNamespace string   `json:"systemNamespace"`
	Components      []string `json:"components"`
	APIServer       struct {
		ExternalURL string `json:"externalURL"`
		NodePort    int32  `json:"nodePort"`
	} `json:"apiServer"`
	Certs struct {
		Mode string `json:"mode"`
		Auto struct {
			Expiry           metav1.Duration `json:"expiry"`
			Hosts            []string        `json:"hosts"`
			RootCAExpiryDays int             `json:"rootCAExpiryDays"`
		} `json:"auto"`
	} `json:"certs"`
	Etcd struct {
		Mode     string `json:"mode"`
		Internal struct {
			ReplicaCount int    `json:"replicaCount"`
			StorageType  string `json:"storageType"`
			PVC          struct {
				StorageClass string `json:"storageClass"`
			} `json:"pvc"`
		} `json:"internal"`
	} `json:"etcd"`
}

// settings are the chart values and what follows from them.
type settings struct {
	chartValues
	spec certificates.Spec
	// isManaged means that the installation issues the certificates.
	isManaged bool
	// apiServer is the name of the API server's Service and Deployment.
	apiServer string
	// internalURL and externalURL are the API server's URLs for clients inside and outside the host cluster,
	// respectively.
	internalURL, externalURL string
}

// readSettings reads an installation's values, whose types the chart's schema has validated.
func readSettings(installation rendering.Installation) (settings, error) {
	effective, err := installation.EffectiveValues()
	if err != nil {
		return settings{}, err
	}
	encoded, err := json.Marshal(effective)
	if err != nil {
		return settings{}, fmt.Errorf("encoding the values of the installation: %w", err)
	}
	s := settings{apiServer: installation.Release + "-apiserver"}
	if err := json.Unmarshal(encoded, &s.chartValues); err != nil {
		return settings{}, fmt.Errorf("decoding the values of the installation: %w", err)
	}
	s.isManaged = s.Certs.Mode == "auto"
	s.internalURL = fmt.Sprintf("https://%s.%s.svc.%s:%d", s.apiServer, installation.Namespace, s.ClusterDomain, apiServerPort)
	if s.externalURL = s.APIServer.ExternalURL; s.externalURL == "" {
		s.externalURL = s.internalURL
	}
	s.spec = certificates.Spec{
		Namespace: installation.Namespace, ClusterDomain: s.ClusterDomain, ReleaseName: installation.Release, SystemNamespace: s.SystemNamespace,
		ExternalHosts:     s.Certs.Auto.Hosts,
		LeafLifetime:      s.Certs.Auto.Expiry.Duration,
		AuthorityLifetime: time.Duration(s.Certs.Auto.RootCAExpiryDays) * 24 * time.Hour,
	}
	if s.Etcd.Mode == "internal" {
		s.spec.EtcdReplicas = s.Etcd.Internal.ReplicaCount
	}
	return s, nil
}

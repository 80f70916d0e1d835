package installer

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"karmada.io/karmada/internal/install/certificates"
	"karmada.io/karmada/internal/install/rendering"
)

// apiServerPort is the port of the Service of the API server.
const apiServerPort = 5443

// settings are the values of the chart that the steps of an installation need.
type settings struct {
	spec certificates.Spec
	// isManaged means that the installation issues the certificates.
	isManaged bool
	// apiServer is the name of the Service and the Deployment of the API server.
	apiServer string
	// internalURL and externalURL are the URLs of the API server for clients in the host, and for
	// clients outside of it.
	internalURL, externalURL string
	nodePort                 int64
	storageClass             string
	usesClaims               bool
	// hasSearch means that the installation contains karmada-search.
	hasSearch bool
}

// readSettings reads the values of an installation. An error names the value.
func readSettings(installation rendering.Installation) (settings, error) {
	values, err := installation.EffectiveValues()
	if err != nil {
		return settings{}, err
	}
	read := reader{values: values}
	apiServer := installation.Release + "-apiserver"
	domain := read.text("clusterDomain")
	s := settings{
		isManaged:   read.text("certs", "mode") == "auto",
		apiServer:   apiServer,
		internalURL: fmt.Sprintf("https://%s.%s.svc.%s:%d", apiServer, installation.Namespace, domain, apiServerPort),
		externalURL: read.text("apiServer", "externalURL"),
		nodePort:    read.number("apiServer", "nodePort"),
	}
	s.hasSearch = slices.Contains(read.texts("components"), search)
	if s.externalURL == "" {
		s.externalURL = s.internalURL
	}
	s.spec = certificates.Spec{
		Namespace: installation.Namespace, ClusterDomain: domain, ReleaseName: installation.Release, SystemNamespace: read.text("systemNamespace"),
		ExternalHosts:     read.texts("certs", "auto", "hosts"),
		LeafLifetime:      read.duration("certs", "auto", "expiry"),
		AuthorityLifetime: time.Duration(read.number("certs", "auto", "rootCAExpiryDays")) * 24 * time.Hour,
	}
	if read.text("etcd", "mode") == "internal" {
		s.spec.EtcdReplicas = int(read.number("etcd", "internal", "replicaCount"))
		s.usesClaims = read.text("etcd", "internal", "storageType") == "pvc"
		s.storageClass = read.text("etcd", "internal", "pvc", "storageClass")
	}
	return s, read.err
}

// reader reads values by their paths. The schema of the chart has checked their types, so an error
// is a mistake in the code.
type reader struct {
	values rendering.Values
	err    error
}

func (r *reader) text(path ...string) string {
	text, found, err := unstructured.NestedString(r.values, path...)
	r.check(found, err, path)
	return text
}

func (r *reader) texts(path ...string) []string {
	list, _, err := unstructured.NestedStringSlice(r.values, path...)
	r.check(true, err, path)
	return list
}

func (r *reader) number(path ...string) int64 {
	value, found, err := unstructured.NestedFieldNoCopy(r.values, path...)
	r.check(found, err, path)
	switch number := value.(type) {
	case int:
		return int64(number)
	case int64:
		return number
	case float64:
		return int64(number)
	}
	r.check(false, nil, path)
	return 0
}

func (r *reader) duration(path ...string) time.Duration {
	text := r.text(path...)
	duration, err := time.ParseDuration(text)
	if err != nil {
		r.check(true, err, path)
	}
	return duration
}

func (r *reader) check(found bool, err error, path []string) {
	if err == nil && !found {
		err = fmt.Errorf("it is missing")
	}
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("value %s: %w", strings.Join(path, "."), err)
	}
}

package install

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/install/certificates"
	"karmada.io/karmada/internal/install/rendering"
)

// etcdSecret is the Secret that contains etcd's CA and serving certificate.
const etcdSecret = "etcd-cert"

// signingFile is the Secret's key for the signing CA's certificate, which is derived from ca.crt.
const signingFile = "ca-signing.crt"

// customKeys maps certificate files to keys of the chart value certs.custom.
var customKeys = map[string]string{
	"ca.crt": "caCrt", "ca.key": "caKey",
	"karmada.crt": "crt", "karmada.key": "key",
	"apiserver.crt": "apiserverCrt", "apiserver.key": "apiserverKey",
	"front-proxy-ca.crt": "frontProxyCaCrt", "front-proxy-ca.key": "frontProxyCaKey",
	"front-proxy-client.crt": "frontProxyCrt", "front-proxy-client.key": "frontProxyKey",
	"etcd-ca.crt": "etcdCaCrt", "etcd-ca.key": "etcdCaKey",
	"etcd-server.crt": "etcdServerCrt", "etcd-server.key": "etcdServerKey",
	"etcd-client.crt": "etcdClientCrt", "etcd-client.key": "etcdClientKey",
}

// withCertificates adds certificates to the installation's values, so that the chart renders the Secrets.
func withCertificates(installation rendering.Installation, files certificates.Set) (rendering.Installation, error) {
	custom := rendering.Values{}
	for file, data := range files {
		if key, ok := customKeys[file]; ok {
			custom[key] = string(data)
		}
	}
	signing, err := certificates.SigningCertificate(files, certificates.CA)
	if err != nil {
		return installation, fmt.Errorf("reading the certificate authority: %w", err)
	}
	custom["caSigningCrt"] = string(signing)
	given := rendering.Values{"certs": rendering.Values{"custom": custom}}
	if etcd, ok := installation.Values["etcd"].(rendering.Values); ok && etcd["mode"] == "external" {
		given["etcd"] = rendering.Values{"external": rendering.Values{"certs": rendering.Values{
			"caCrt": string(files["etcd-ca.crt"]), "crt": string(files["etcd-client.crt"]), "key": string(files["etcd-client.key"]),
		}}}
	}
	installation.Values = rendering.Merge(installation.Values, given)
	return installation, nil
}

// certificateSecret returns the name of the Secret that contains the certificates.
func (i *Installer) certificateSecret() string {
	if i.Release == rendering.DefaultRelease {
		return clusterv1alpha1.CertificateSecret
	}
	return i.Release + "-cert"
}

// readCertificates returns the stored certificates. The set is empty if none are stored.
func (i *Installer) readCertificates(ctx context.Context) (certificates.Set, error) {
	files := certificates.Set{}
	names := []string{i.certificateSecret()}
	if i.settings.spec.EtcdReplicas > 0 {
		names = append(names, etcdSecret) // else it belongs to another installation
	}
	for _, name := range names {
		secret := &corev1.Secret{}
		err := i.host.Get(ctx, client.ObjectKey{Namespace: i.Namespace, Name: name}, secret)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading Secret %s/%s of %s: %w", i.Namespace, name, HostName, err)
		}
		for file, data := range secret.Data {
			if len(data) > 0 && file != signingFile {
				files[file] = data
			}
		}
	}
	return files, nil
}

// ensureCertificates issues certificates that are missing or due for renewal, and renders the host cluster's
// objects with them.
func (i *Installer) ensureCertificates(ctx context.Context) error {
	stored, err := i.readCertificates(ctx)
	if err != nil {
		return err
	}
	i.hadCertificates = len(stored[certificates.Karmada+".crt"]) > 0
	if i.settings.isManaged {
		if err := i.issueCertificates(stored); err != nil {
			return err
		}
	} else {
		i.files = customCertificates(i.Installation)
	}
	return i.renderHost()
}

// issueCertificates issues the certificates that are missing from the stored ones or due for renewal.
func (i *Installer) issueCertificates(stored certificates.Set) (err error) {
	maps.Copy(stored, externalEtcd(i.Installation))
	maps.Copy(stored, i.ExternalEtcd)
	i.settings.spec.GivenCA = i.GivenCA
	if i.files, i.changes, err = certificates.Ensure(stored, i.settings.spec, i.now()); err != nil {
		return fmt.Errorf("issuing certificates: %w", err)
	}
	for _, change := range i.changes {
		i.Progressf("certificate %s is issued: it %s", change.Name, change.Reason)
	}
	return nil
}

// externalEtcd returns the certificates for an external etcd from the installation's values.
func externalEtcd(installation rendering.Installation) certificates.Set {
	files := certificates.Set{}
	for file, key := range map[string]string{"etcd-ca.crt": "caCrt", "etcd-client.crt": "crt", "etcd-client.key": "key"} {
		// The chart's schema has validated the types.
		if text, _, _ := unstructured.NestedString(installation.Values, "etcd", "external", "certs", key); text != "" {
			files[file] = []byte(text)
		}
	}
	return files
}

// customCertificates returns the certificates from the installation's values.
func customCertificates(installation rendering.Installation) certificates.Set {
	files := certificates.Set{}
	certs, _ := installation.Values["certs"].(rendering.Values)
	custom, _ := certs["custom"].(rendering.Values)
	for file, key := range customKeys {
		if text, _ := custom[key].(string); text != "" {
			files[file] = []byte(text)
		}
	}
	// Like the chart, use the components' certificate if there is no separate one for the API server.
	for _, suffix := range []string{".crt", ".key"} {
		if files["apiserver"+suffix] == nil {
			files["apiserver"+suffix] = files["karmada"+suffix]
		}
	}
	return files
}

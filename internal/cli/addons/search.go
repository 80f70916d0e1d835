package addons

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/install"
	"karmada.io/karmada/internal/install/rendering"
)

const (
	// searchKey is karmada-search's key in the chart values.
	searchKey = "search"
	// searchPort is the port of karmada-search's Service in the host cluster.
	searchPort = 443
	// apiServer is the Deployment of the control plane's API server.
	apiServer = "karmada-apiserver"
)

func enableSearch(ctx context.Context, s *session, o *enableOptions) (written int, err error) {
	certificates, err := s.readInstallation(ctx, install.SearchProgram)
	if err != nil {
		return 0, err
	}
	if err := s.connectKarmada(ctx); err != nil {
		return 0, err
	}
	registration, err := s.searchRegistration(o.hostDomain, certificates.Data[install.CAKey])
	if err != nil {
		return 0, err
	}
	for _, object := range registration {
		// Write nothing to the host cluster if another installer registered karmada-search in the control
		// plane.
		if err := s.karmadaApplier().VerifyOwner(ctx, object); err != nil {
			return 0, err
		}
	}
	etcd, err := s.readEtcdValues(ctx)
	if err != nil {
		return 0, err
	}
	objects, err := s.renderAddon(ctx, searchKey, o.componentValues(install.SearchProgram),
		values{"etcd": etcd, "clusterDomain": o.hostDomain})
	if err != nil {
		return 0, err
	}
	if written, err = s.hostApplier().Apply(ctx, objects...); err != nil {
		return written, err
	}
	if err := s.awaitReady(ctx, install.SearchProgram, o.podTimeoutDuration()); err != nil {
		return written, err
	}
	registered, err := s.karmadaApplier().Apply(ctx, registration...)
	written += registered
	if err != nil {
		return written, err
	}
	config, err := s.karmadaConfig(ctx)
	if err != nil {
		return written, fmt.Errorf("%s: %w", karmadaName, err)
	}
	return written, install.AwaitAPIServices(ctx, config, time.Duration(o.apiServiceTimeout)*time.Second,
		install.APIServiceNames(registration)...)
}

// disableSearch removes the registration before the server, because an APIService without a server blocks
// the deletion of namespaces in the control plane.
func disableSearch(ctx context.Context, s *session) error {
	if err := s.connectKarmada(ctx); err != nil {
		return err
	}
	registration, err := s.searchRegistration("", nil)
	if err != nil {
		return err
	}
	if err := s.karmadaApplier().Delete(ctx, registration...); err != nil {
		return err
	}
	objects, err := s.renderAddon(ctx, searchKey, values{}, values{"etcd": externalEtcd("unused", "")})
	if err != nil {
		return err
	}
	return s.hostApplier().Delete(ctx, objects...)
}

// searchRegistration returns the objects that register karmada-search in the control plane. ca is the
// control plane's CA certificate in PEM.
func (s *session) searchRegistration(hostDomain string, ca []byte) ([]client.Object, error) {
	host := strings.TrimSuffix(fmt.Sprintf("%s.%s.svc.%s", install.SearchProgram, s.hostFlags.Namespace, hostDomain), ".")
	return install.ServerObjects(rendering.Installation{Release: rendering.DefaultRelease, Namespace: s.hostFlags.Namespace},
		install.SearchProgram, rendering.Address{Host: host, Port: searchPort}, ca)
}

// readEtcdValues returns the chart values for the etcd of the control plane's API server. It reads them from
// the API server's Deployment, because the control plane may have been installed in any way.
func (s *session) readEtcdValues(ctx context.Context) (values, error) {
	deployment := &appsv1.Deployment{}
	err := s.host.Get(ctx, client.ObjectKey{Namespace: s.hostFlags.Namespace, Name: apiServer}, deployment)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("Deployment %s is missing in namespace %s of %s: install the control plane there first (karmadactl init), or set its namespace with --namespace", apiServer, s.hostFlags.Namespace, hostName) //nolint:staticcheck // Deployment is a kind
	}
	if err != nil {
		return nil, fmt.Errorf("reading Deployment %s/%s of %s: %w", s.hostFlags.Namespace, apiServer, hostName, err)
	}
	servers, prefix := etcdArguments(deployment)
	if servers == "" {
		return nil, fmt.Errorf("no container of Deployment %s/%s of %s has the argument --etcd-servers=URLS, which karmada-search needs too",
			s.hostFlags.Namespace, apiServer, hostName)
	}
	return externalEtcd(servers, prefix), nil
}

// etcdArguments returns the API server's arguments --etcd-servers and --etcd-prefix.
func etcdArguments(deployment *appsv1.Deployment) (servers, prefix string) {
	for _, container := range deployment.Spec.Template.Spec.Containers {
		for _, argument := range append(container.Command, container.Args...) {
			if value, ok := strings.CutPrefix(argument, "--etcd-servers="); ok {
				servers = value
			}
			if value, ok := strings.CutPrefix(argument, "--etcd-prefix="); ok {
				prefix = value
			}
		}
	}
	return servers, prefix
}

func externalEtcd(servers, prefix string) values {
	return values{"mode": "external", "external": values{"servers": servers, "registryPrefix": prefix}}
}

package extensionserver

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/klog/v2"
)

// certificatePollPeriod is how often certificate files are read again. Reading the few small files of
// a server takes less than a millisecond.
const certificatePollPeriod = 2 * time.Second

// PollCA returns the provider, but with files that are read again every 2 seconds instead of being
// watched. Each watched file takes one of the inotify instances of the user, of which Linux allows
// 128 by default. All sources of the provider must be files.
func PollCA(content dynamiccertificates.CAContentProvider) dynamiccertificates.CAContentProvider {
	if source, ok := content.(dynamiccertificates.ControllerRunner); ok {
		return &polledCA{content, poller{source}}
	}
	return content
}

// PollCertificates calls PollCA for the client CA and the serving certificate of a server and for
// other CAs of that server.
func PollCertificates(serving *genericapiserver.SecureServingInfo, others ...*dynamiccertificates.CAContentProvider) {
	for _, content := range append(others, &serving.ClientCA) {
		*content = PollCA(*content)
	}
	serving.Cert = pollServingCert(serving.Cert)
}

func pollServingCert(content dynamiccertificates.CertKeyContentProvider) dynamiccertificates.CertKeyContentProvider {
	if source, ok := content.(dynamiccertificates.ControllerRunner); ok {
		return &polledCert{content, poller{source}}
	}
	return content
}

type polledCA struct {
	dynamiccertificates.CAContentProvider
	poller
}

type polledCert struct {
	dynamiccertificates.CertKeyContentProvider
	poller
}

// poller implements dynamiccertificates.ControllerRunner for the files of another implementation.
type poller struct {
	source dynamiccertificates.ControllerRunner
}

// RunOnce reads the files. It notifies the listeners if their content changed.
func (p poller) RunOnce(ctx context.Context) error { return p.source.RunOnce(ctx) }

// Run reads the files at intervals until the context ends. After an error, the server uses the
// certificates that were read last.
func (p poller) Run(ctx context.Context, _ int) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := p.RunOnce(ctx); err != nil {
			klog.FromContext(ctx).Error(err, "Reading certificate files again")
		}
	}, certificatePollPeriod)
}

// Package testenv provides environments for tests: a real control plane with all components in this process,
// and members that are real API servers.
//
// Members run no controllers, so only Karmada and the test change objects in a member. For example, the test
// sets a Deployment's status. Environments are expensive, so a test package starts one environment in its
// TestMain and gives each test a namespace.
package testenv

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"karmada.io/karmada/api"
	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/programs/controllermanager"
	"karmada.io/karmada/internal/standalone"
	"karmada.io/karmada/internal/standalone/controlplane"
	"karmada.io/karmada/internal/standalone/freeport"
)

// Env is a control plane with members.
type Env struct {
	// Karmada reads and writes the control plane, without a cache.
	Karmada client.WithWatch
	// Config is the administrator's client configuration for the control plane.
	Config *rest.Config
	// Members are the member clusters by name.
	Members map[string]*Member
	// FeatureGates are the feature gates of the components, in the format of the flag
	// --feature-gates. A change applies from their next start. Empty means the defaults.
	FeatureGates string
	// Options changes the default options of the controller manager. A change of this field applies
	// from the next start of the components. nil changes nothing.
	Options func(*controllermanager.Options)
	// Through is the URL at which the components reach the control plane. A change applies from
	// their next start. Empty means the URL of the control plane itself.
	Through string
	// Wrap wraps the transports of the components to the control plane and to the members. A change
	// applies from their next start. nil wraps nothing.
	Wrap transport.WrapperFunc

	dir        string
	writes     writeLog
	logFile    string
	control    *childControlPlane
	components *components
}

// Member is a member cluster.
type Member struct {
	// Client reads and writes the member, without a cache.
	Client client.WithWatch
	// Config is the administrator's client configuration. Token is a token that has all
	// permissions.
	Config *rest.Config
	Token  string

	options standalone.Options
	writes  writeLog
	cluster *standalone.Cluster
}

// start starts a control plane and registered members in dir. The control plane appends its logs
// to logFile. An empty logFile drops the logs. The caller must stop the environment.
func start(ctx context.Context, dir, logFile string, members ...string) (_ *Env, err error) {
	env := &Env{Members: map[string]*Member{}, dir: filepath.Join(dir, "control-plane"), logFile: logFile}
	defer func() {
		if err != nil {
			env.Stop()
		}
	}()
	env.writes.path = filepath.Join(env.dir, "writes.log")
	env.control, err = startChild(ctx, env.childOptions(nil))
	if err != nil {
		return nil, fmt.Errorf("starting the control plane: %w", err)
	}
	env.Config = env.control.Config()
	if env.Karmada, err = newClient(env.Config); err != nil {
		return nil, err
	}
	if err := env.StartComponents(ctx); err != nil {
		return nil, fmt.Errorf("starting the components: %w", err)
	}
	for _, name := range members {
		if err := env.addMember(ctx, dir, name); err != nil {
			return nil, err
		}
	}
	return env, env.awaitMembers(ctx, members)
}

// membersTimeout is the time in which registered members become ready. memberPollInterval is the time
// between two checks.
const (
	membersTimeout     = time.Minute
	memberPollInterval = 50 * time.Millisecond
)

// awaitMembers waits until the scheduler may use the members. A workload whose replicas are divided
// keeps its clusters, so a workload that is created earlier would never use a member that was late.
func (e *Env) awaitMembers(ctx context.Context, members []string) error {
	ctx, cancel := context.WithTimeout(ctx, membersTimeout)
	defer cancel()
	for _, name := range members {
		cluster := &clusterv1alpha1.Cluster{}
		err := wait.PollUntilContextCancel(ctx, memberPollInterval, true, func(ctx context.Context) (bool, error) {
			if err := e.Karmada.Get(ctx, client.ObjectKey{Name: name}, cluster); err != nil {
				return false, err
			}
			return meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady) && len(cluster.Spec.Taints) == 0, nil
		})
		if err != nil {
			return fmt.Errorf("waiting until member %q is ready, it has the conditions %+v and the taints %+v: %w", name, cluster.Status.Conditions,
				cluster.Spec.Taints, err)
		}
	}
	return nil
}

// Scheme returns a scheme with the types of Kubernetes and of Karmada.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(api.AddToScheme(scheme))
	return scheme
}

func newClient(config *rest.Config) (client.WithWatch, error) {
	made, err := client.NewWithWatch(config, client.Options{Scheme: Scheme()})
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return made, nil
}

// addMember starts a member and registers it.
func (e *Env) addMember(ctx context.Context, dir, name string) error {
	member, err := StartMember(ctx, filepath.Join(dir, name), name)
	if err != nil {
		return err
	}
	e.Members[name] = member
	return e.Register(ctx, name, member)
}

// StartMember starts a member cluster without registering it.
func StartMember(ctx context.Context, dir, name string) (*Member, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making directory of member %q: %w", name, err)
	}
	token := uuid.NewString()
	port, err := freeport.Reserve()
	if err != nil {
		return nil, err
	}
	tokens := filepath.Join(dir, "tokens.csv")
	if err := os.WriteFile(tokens, []byte(token+",karmada,karmada,system:masters\n"), 0o600); err != nil {
		return nil, fmt.Errorf("writing token of member %q: %w", name, err)
	}
	member := &Member{Token: token, options: standalone.Options{
		Name: name, CommonName: name, Dir: dir, Port: port,
		AuditLog: filepath.Join(dir, "writes.log"), AuditPolicy: writesOnly,
		APIServerFlags: []string{"--token-auth-file=" + tokens, "--disable-admission-plugins=ServiceAccount",
			// Without these flags, the server would watch the files although no test extends its API, and the
			// kernel gives each user only 128 watchers.
			"--requestheader-client-ca-file=", "--proxy-client-cert-file=", "--proxy-client-key-file="},
	}}
	member.writes.path = member.options.AuditLog
	if err := member.Start(ctx); err != nil {
		return nil, err
	}
	return member, nil
}

// starting is locked while one of the test program's servers starts. Kubernetes gives an API server one
// minute to start, which is too short if many API servers start concurrently on a small machine.
var starting sync.Mutex

// StartCluster does the same as standalone.Start, and parallel tests may call it.
func StartCluster(ctx context.Context, options standalone.Options) (*standalone.Cluster, error) {
	starting.Lock()
	defer starting.Unlock()
	return standalone.Start(ctx, options) // a replacement
}

// StartControlPlane does the same as controlplane.Start, and parallel tests may call it.
func StartControlPlane(ctx context.Context, options controlplane.Options) (*controlplane.ControlPlane, error) {
	starting.Lock()
	defer starting.Unlock()
	options.DefaultConfig = append(options.DefaultConfig, controlplane.LocalMembersConfig()...)
	return controlplane.Start(ctx, options) // a replacement
}

// Start starts the member. After Stop, it starts the member on the same port and with the stored
// objects.
func (m *Member) Start(ctx context.Context) error {
	cluster, err := StartCluster(ctx, m.options)
	if err != nil {
		return fmt.Errorf("starting member %q: %w", m.options.Name, err)
	}
	m.cluster, m.Config, m.options.Port = cluster, cluster.Config(), cluster.Port()
	if m.Client, err = newClient(m.Config); err != nil {
		cluster.Stop()
		return err
	}
	return nil
}

// Register registers the member with the control plane in push mode.
func (e *Env) Register(ctx context.Context, name string, member *Member) error {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Name: name},
		Data: map[string][]byte{
			clusterv1alpha1.SecretTokenKey:  []byte(member.Token),
			clusterv1alpha1.SecretCADataKey: member.cluster.CA().PEM(),
		},
	}
	if err := e.Karmada.Create(ctx, secret); err != nil {
		return fmt.Errorf("storing credentials of member %q: %w", name, err)
	}
	cluster := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"member": name}},
		Spec: clusterv1alpha1.ClusterSpec{
			// The Cluster has no ID, because tests also register the same member under other names.
			SyncMode: clusterv1alpha1.Push, APIEndpoint: member.cluster.Server(),
			SecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: secret.Namespace, Name: secret.Name},
		},
	}
	if err := e.Karmada.Create(ctx, cluster); err != nil {
		return fmt.Errorf("registering member %q: %w", name, err)
	}
	if err := controllerutil.SetOwnerReference(cluster, secret, e.Karmada.Scheme()); err != nil {
		return fmt.Errorf("giving credentials of member %q an owner: %w", name, err)
	}
	if err := e.Karmada.Update(ctx, secret); err != nil {
		return fmt.Errorf("giving credentials of member %q an owner: %w", name, err)
	}
	return nil
}

// Stop stops the components, the members and the control plane.
func (e *Env) Stop() {
	_ = e.StopComponents()
	var stops sync.WaitGroup
	for _, member := range e.Members {
		stops.Go(member.Stop)
	}
	stops.Wait()
	if e.control != nil {
		e.control.Stop()
	}
}

// Stop stops the member. Its stored objects stay in its directory.
func (m *Member) Stop() { m.cluster.Stop() }

// Patience is how long a test waits for an expected result. The namespace controller starts to delete a
// deleted namespace's objects after 5 seconds and retries every 8 seconds, so the deletion of a namespace
// with several finalizers takes 30 seconds, and longer on a busy machine.
const Patience = 2 * time.Minute

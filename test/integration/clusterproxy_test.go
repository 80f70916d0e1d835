package integration

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/testenv"
)

const impersonatorAccount = "karmada-impersonator"

// registerProxiedMember registers member3 again under another name and stores the token of an
// impersonator account for it, as join does.
func registerProxiedMember(t *testing.T, env *testenv.Env, name string) {
	t.Helper()
	if err := env.Register(t.Context(), name, env.Members[member3]); err != nil {
		t.Fatal(err)
	}
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := env.Karmada.Delete(ctx, cluster); err != nil {
			t.Errorf("deleting Cluster %s: %v", name, err)
		}
		awaitGone(t, env.Karmada, cluster)
	})
	addImpersonator(t, env, name, member3)
}

// addImpersonator stores the token of an impersonator account of a member for a cluster, as join does.
func addImpersonator(t *testing.T, env *testenv.Env, cluster, member string) {
	t.Helper()
	memberNamespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: clusterv1alpha1.NamespaceKarmadaCluster}}
	if err := memberClient(env, member).Create(t.Context(), memberNamespace); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: memberNamespace.Name, Name: impersonatorAccount}}
	createInMember(t, env, member, account)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Name: cluster + "-impersonator"},
		Data:       map[string][]byte{clusterv1alpha1.SecretTokenKey: []byte(newServiceAccountToken(t, env.Members[member].Config, account))},
	}
	env.Create(t, secret)
	cleanUp(t, env, secret)
	testenv.Update(t, env.Karmada, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}, func(c *clusterv1alpha1.Cluster) {
		c.Spec.ImpersonatorSecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: secret.Namespace, Name: secret.Name}
	})
}

// createInMember3 creates objects in member3 and deletes them at the end of the test.
func createInMember3(t *testing.T, env *testenv.Env, objects ...client.Object) {
	t.Helper()
	createInMember(t, env, member3, objects...)
}

// createInMember creates objects in a member and deletes them at the end of the test.
func createInMember(t *testing.T, env *testenv.Env, member string, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := memberClient(env, member).Create(t.Context(), object); err != nil {
			t.Fatalf("creating %T %s in %s: %v", object, object.GetName(), member, err)
		}
		t.Cleanup(func() {
			if err := client.IgnoreNotFound(memberClient(env, member).Delete(context.WithoutCancel(t.Context()), object)); err != nil {
				t.Errorf("deleting %T %s: %v", object, object.GetName(), err)
			}
		})
	}
}

// newServiceAccountToken requests a token of a service account.
func newServiceAccountToken(t *testing.T, config *rest.Config, account *corev1.ServiceAccount) string {
	t.Helper()
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	request, err := clientset.CoreV1().ServiceAccounts(account.Namespace).CreateToken(t.Context(), account.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// newCertificateConfig returns a client configuration with a new certificate for a user of the
// control plane.
func newCertificateConfig(t *testing.T, env *testenv.Env, name string, groups ...string) *rest.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name, Organization: groups}}, key)
	if err != nil {
		t.Fatal(err)
	}
	request := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature},
		},
	}
	env.Create(t, request)
	cleanUp(t, env, request)
	request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test",
	}}
	if err := env.Karmada.SubResource("approval").Update(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	request = await(t, env.Karmada, request, func(r *certificatesv1.CertificateSigningRequest) error {
		if len(r.Status.Certificate) == 0 {
			return errors.New("there is no certificate")
		}
		return nil
	})
	config := rest.AnonymousClientConfig(env.Config)
	config.CertData = request.Status.Certificate
	if config.KeyData, err = keyutil.MarshalPrivateKeyToPEM(key); err != nil {
		t.Fatal(err)
	}
	return config
}

// grantProxyAccess grants subjects the verbs on the proxy of a cluster. The verb impersonate alone
// does not allow the subjects to use the proxy. It only allows the control plane to impersonate
// them in the member.
func grantProxyAccess(t *testing.T, env *testenv.Env, cluster string, verbs []string, subjects ...rbacv1.Subject) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "proxy-"}, Rules: []rbacv1.PolicyRule{{
		Verbs: verbs, APIGroups: []string{clusterv1alpha1.GroupName}, Resources: []string{"clusters/proxy"}, ResourceNames: []string{cluster},
	}}}
	env.Create(t, role)
	cleanUp(t, env, role)
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}, Subjects: subjects,
	}
	env.Create(t, binding)
	cleanUp(t, env, binding)
}

// proxyConfig returns a client configuration for a cluster through the proxy of the control plane.
func proxyConfig(config *rest.Config, cluster string) *rest.Config {
	config = rest.CopyConfig(config)
	config.Host = strings.TrimRight(config.Host, "/") + "/apis/cluster.karmada.io/v1alpha1/clusters/" + cluster + "/proxy"
	return config
}

func newClientset(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return clientset
}

// TestClusterProxyForwardsUsers registers and removes a cluster, so no other test may do so at
// the same time.
func TestClusterProxyForwardsUsers(t *testing.T) {
	env := alone(t)
	const gate = "gate"
	registerProxiedMember(t, env, gate)
	namespace := env.Namespace(t)
	robot := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "robot"}}
	env.Create(t, robot)
	await(t, memberClient(env, member3), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, exists)
	createInMember3(t, env, configMap(namespace, "settings"))
	createInMember3(t, env,
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "reader"}, Rules: []rbacv1.PolicyRule{{
			Verbs: []string{"get", "list", "watch", "create"}, APIGroups: []string{""}, Resources: []string{"configmaps", "pods/exec"},
		}}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "reader"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
			Subjects: []rbacv1.Subject{
				{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "ann"},
				{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "bob"},
				{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: robot.Name},
			},
		})
	grantProxyAccess(t, env, gate, []string{"*"},
		rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "ann"},
		rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "bob"},
		rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: robot.Name})
	asAnn := newCertificateConfig(t, env, "ann")
	asRobot := rest.AnonymousClientConfig(env.Config)
	asRobot.BearerToken = newServiceAccountToken(t, env.Config, robot)

	for name, config := range map[string]*rest.Config{"a user with a certificate": asAnn, "a service account": asRobot} {
		t.Run(name, func(t *testing.T) { checkMemberAccess(t, newClientset(t, proxyConfig(config, gate)), namespace) })
	}
	t.Run("a user in a group that the control plane may not impersonate", func(t *testing.T) {
		bobClient := newClientset(t, proxyConfig(newCertificateConfig(t, env, "bob", "dev"), gate))
		testenv.Eventually(t, "Forbidden with the name of the group", func(ctx context.Context) error {
			_, err := bobClient.CoreV1().ConfigMaps(namespace).Get(ctx, "settings", metav1.GetOptions{})
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `cluster "gate" does not let the control plane impersonate Group "dev"`) {
				return fmt.Errorf("got %w", err)
			}
			return nil
		})
		grantProxyAccess(t, env, gate, []string{"impersonate"}, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "dev"})
		checkMemberAccess(t, bobClient, namespace)
		eveClient := newClientset(t, proxyConfig(newCertificateConfig(t, env, "eve", "dev"), gate))
		if _, err := eveClient.CoreV1().ConfigMaps(namespace).Get(t.Context(), "settings", metav1.GetOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "clusters.cluster.karmada.io") {
			t.Errorf("another user of the group may use the proxy: %v", err)
		}
	})
	t.Run("a watch", func(t *testing.T) { checkWatch(t, env, newClientset(t, proxyConfig(asAnn, gate)), namespace) })
	t.Run("exec in a Pod that does not exist", func(t *testing.T) {
		_, resp := requestUpgrade(t, proxyConfig(asAnn, gate), "/api/v1/namespaces/"+namespace+"/pods/none/exec?command=ls&stdout=true")
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != http.StatusNotFound || !strings.Contains(string(body), `pods \"none\" not found`) {
			t.Errorf("got %s %s, want the response of the member", resp.Status, body)
		}
	})
	t.Run("all clusters", func(t *testing.T) { checkListOfAllClusters(t, env, namespace) })
	t.Run("a cluster that does not exist", func(t *testing.T) {
		_, err := newClientset(t, proxyConfig(env.Config, "none")).CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{})
		if !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), `clusters.cluster.karmada.io "none" not found`) {
			t.Errorf("got %v", err)
		}
	})
}

// checkMemberAccess waits until a user may read what the member's RBAC allows. Other requests must
// be Forbidden.
func checkMemberAccess(t *testing.T, memberClient kubernetes.Interface, namespace string) {
	t.Helper()
	testenv.Eventually(t, "read a ConfigMap of the member", func(ctx context.Context) error {
		found, err := memberClient.CoreV1().ConfigMaps(namespace).Get(ctx, "settings", metav1.GetOptions{})
		if err != nil {
			return err
		}
		return checkEqual("data", map[string]string{"color": "blue"}, found.Data)
	})
	_, err := memberClient.CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `cannot list resource "secrets"`) {
		t.Errorf("secrets: got %v, want Forbidden from the member", err)
	}
}

// checkWatch checks that a watch delivers events at once and not only when the watch ends.
func checkWatch(t *testing.T, env *testenv.Env, memberClient kubernetes.Interface, namespace string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Patience)
	defer cancel()
	events, err := memberClient.CoreV1().ConfigMaps(namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	next := func() string {
		select {
		case event := <-events.ResultChan():
			if object, ok := event.Object.(*corev1.ConfigMap); ok && object.Name != "kube-root-ca.crt" {
				return string(event.Type) + " " + object.Name
			}
			return string(event.Type)
		case <-ctx.Done():
			return "nothing"
		}
	}
	if got := next(); got != "ADDED settings" {
		t.Errorf("the first event is %s", got)
	}
	createInMember3(t, env, configMap(namespace, "later"))
	if got := next(); got != "ADDED later" {
		t.Errorf("the second event is %s", got)
	}
}

// checkListOfAllClusters lists objects of all clusters. Only one of the clusters has a token of an
// impersonator account.
func checkListOfAllClusters(t *testing.T, env *testenv.Env, namespace string) {
	t.Helper()
	allClustersClient := newClientset(t, proxyConfig(env.Config, "*"))
	testenv.Eventually(t, "list ConfigMaps of all clusters", func(ctx context.Context) error {
		list, err := allClustersClient.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return err
		}
		var got []string
		for _, item := range list.Items {
			got = append(got, item.Annotations[clusterv1alpha1.QueryFromClusterAnnotation]+"/"+item.Name)
		}
		if !slices.Contains(got, "gate/settings") {
			return fmt.Errorf("the lists have %q", got)
		}
		return nil
	})
	if found, err := allClustersClient.CoreV1().ConfigMaps(namespace).Get(t.Context(), "settings", metav1.GetOptions{}); err != nil || found.Data["color"] != "blue" {
		t.Errorf("get of an object in one of all clusters: %v, %v", found, err)
	}
	if version, err := allClustersClient.Discovery().ServerVersion(); err != nil || version.Major == "" {
		t.Errorf("the version of the control plane: %v, %v", version, err)
	}
}

// TestClusterProxyForwardsStreams registers a cluster, so no other test may do so at the same time.
func TestClusterProxyForwardsStreams(t *testing.T) {
	env := joining(t)
	echo := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Upgrade") == "" {
			http.Error(w, "ok", http.StatusOK)
			return
		}
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n%s as %s\n", req.URL.RequestURI(), req.Header.Get("Impersonate-User"))
		_, _ = io.Copy(conn, buffered)
	}))
	t.Cleanup(echo.Close)
	cluster := registerUnmanagedMember(t, env, "echo", echo.URL)
	conn, resp := requestUpgrade(t, proxyConfig(env.Config, "echo"), "/api/v1/namespaces/a/pods/web/exec?command=sh&stdin=true")
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusSwitchingProtocols {
		body, _ := io.ReadAll(resp.Body)
		t.Fatalf("got %s %s", resp.Status, body)
	}
	if line, err := conn.ReadString('\n'); err != nil || !strings.HasPrefix(line, "/api/v1/namespaces/a/pods/web/exec?command=sh&stdin=true as ") {
		t.Errorf("the member received %q, %v", line, err)
	}
	fmt.Fprintln(conn, "hello")
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	if line, err := conn.ReadString('\n'); err != nil || line != "hello\n" {
		t.Errorf("got back %q, %v", line, err)
	}
	// The streams of a deleted Cluster are closed.
	deleteObject(t, env.Karmada, cluster)
	if remaining, err := io.ReadAll(conn); len(remaining) > 0 {
		t.Errorf("after the cluster was deleted: got %q, %v", remaining, err)
	}
}

// registerUnmanagedMember registers a cluster in pull mode, to which only users send requests, through
// the proxy.
func registerUnmanagedMember(t *testing.T, env *testenv.Env, name, endpoint string) *clusterv1alpha1.Cluster {
	t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Name: name + "-impersonator"},
		Data:       map[string][]byte{clusterv1alpha1.SecretTokenKey: []byte("token")},
	}
	cluster := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: clusterv1alpha1.ClusterSpec{
			SyncMode: clusterv1alpha1.Pull, APIEndpoint: endpoint, InsecureSkipTLSVerification: true,
			ImpersonatorSecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: secret.Namespace, Name: secret.Name},
		},
	}
	env.Create(t, secret, cluster)
	cleanUp(t, env, secret)
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(env.Karmada.Delete(context.WithoutCancel(t.Context()), cluster)); err != nil {
			t.Errorf("deleting Cluster %s: %v", name, err)
		}
		awaitGone(t, env.Karmada, cluster)
	})
	return cluster
}

// requestUpgrade requests a protocol upgrade and returns the connection with the response.
func requestUpgrade(t *testing.T, config *rest.Config, path string) (*bufio.ReadWriter, *http.Response) {
	t.Helper()
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, config.Host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "echo")
	tlsConfig.NextProtos = nil
	conn, err := tls.Dial("tcp", req.URL.Host, tlsConfig)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(testenv.Patience))
	if err := req.Write(conn); err != nil {
		t.Fatal(err)
	}
	stream := bufio.NewReadWriter(bufio.NewReader(conn), bufio.NewWriter(conn))
	resp, err := http.ReadResponse(stream.Reader, req)
	if err != nil {
		t.Fatal(err)
	}
	return stream, resp
}

package addons

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/cli/command"
)

// readMember returns the member's kubeconfig for a Pod: with one context and no references to files. It
// verifies that the kubeconfig's user may list what the estimator reads.
func readMember(ctx context.Context, member command.Kubeconfig, cluster string) ([]byte, error) {
	config, origin, err := member.MemberConfig(cluster)
	if err != nil {
		return nil, err
	}
	if err := verifyMemberAccess(ctx, config, origin); err != nil {
		return nil, err
	}
	raw, err := member.Loader().RawConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of member %q: %w", cluster, err)
	}
	raw.CurrentContext = command.ChooseContext(&raw, member.Context, cluster).Context
	return embed(raw, cluster)
}

// embed reduces the kubeconfig to its current context and embeds the content of referenced files.
func embed(raw clientcmdapi.Config, cluster string) ([]byte, error) {
	if err := clientcmdapi.MinifyConfig(&raw); err != nil {
		return nil, fmt.Errorf("selecting the context of member %q: %w", cluster, err)
	}
	for _, user := range raw.AuthInfos {
		if user.Exec != nil || user.AuthProvider != nil {
			return nil, fmt.Errorf("the kubeconfig of member %q gets its credentials from a program, which the Pod of the estimator cannot run: give a kubeconfig with a token or a client certificate", cluster)
		}
		if user.TokenFile != "" {
			return nil, fmt.Errorf("the kubeconfig of member %q refers to the token file %s, which the Pod of the estimator cannot read: put the token into the kubeconfig", cluster, user.TokenFile)
		}
	}
	if err := clientcmdapi.FlattenConfig(&raw); err != nil {
		return nil, fmt.Errorf("reading the files of the kubeconfig of member %q: %w", cluster, err)
	}
	content, err := clientcmd.Write(raw)
	if err != nil {
		return nil, fmt.Errorf("encoding the kubeconfig of member %q: %w", cluster, err)
	}
	return content, nil
}

// verifyMemberAccess verifies that the member's nodes and Pods can be listed.
func verifyMemberAccess(ctx context.Context, config *rest.Config, origin string) error {
	config.Timeout = requestTimeout
	member, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return fmt.Errorf("creating a client of the member: %w", err)
	}
	for _, kind := range []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("NodeList"),
		corev1.SchemeGroupVersion.WithKind("PodList")} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		if err := member.List(ctx, list, client.Limit(1)); err != nil {
			return fmt.Errorf("reading a %s of the member, which the estimator needs, with %s: %w", kind.Kind, origin, err)
		}
	}
	return nil
}

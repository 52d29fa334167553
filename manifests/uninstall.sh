#!/bin/sh
# Takes Sluice out of a cluster, whether its manager runs, hangs or is gone, and whether or not
# `kubectl delete -k` was tried before. Queues, flavors and Workloads go with it; Jobs stay as they
# are, running or suspended. docs/uninstall.md says more. It may be run again.
#
#   manifests/uninstall.sh [flags for kubectl, such as --context NAME]
set -eu
folder=$(dirname "$0")

# Its rights first: from here on the manager can put nothing back, even where it cannot be stopped.
# Then what would refuse the steps below: webhooks with nobody behind them.
kubectl "$@" delete --ignore-not-found clusterrolebinding/sluice-manager
kubectl "$@" delete --ignore-not-found \
    -f "$folder/base/webhook-mutating.yaml" -f "$folder/base/webhook-validating.yaml"
kubectl "$@" delete --ignore-not-found --wait=false -n sluice-system deployment/sluice-manager

# Objects stored in an older version must not need our webhook to be read, and finalizers are the
# manager's to take off. One line of JSON for each object that has some.
held='{{range .items}}{{if .metadata.finalizers -}}
{"apiVersion":"{{.apiVersion}}","kind":"{{.kind}}","metadata":{"name":"{{.metadata.name}}"
{{- with .metadata.namespace}},"namespace":"{{.}}"{{end}}}}
{{end}}{{end}}'
kinds=$(kubectl "$@" get customresourcedefinitions -o name |
    sed -n -E 's#^.*/(.*\.(kueue\.x-k8s|sluicegate)\.io)$#\1#p')
if [ -n "$kinds" ]; then
    # shellcheck disable=SC2086  # one word for each kind
    kubectl "$@" patch customresourcedefinitions $kinds --type=merge \
        --patch '{"spec":{"conversion":{"strategy":"None","webhook":null}}}'
    objects=$(kubectl "$@" get "$(echo "$kinds" | paste -s -d , -)" --all-namespaces \
        -o go-template="$held")
    if [ -n "$objects" ]; then
        echo "$objects" |
            kubectl "$@" patch -f - --type=merge --patch '{"metadata":{"finalizers":null}}'
    fi
fi

# Everything else, and with the definitions every object of theirs.
kubectl "$@" delete --ignore-not-found --timeout=5m -k "$folder/base"

"""Values to render the chart with: every one of values.yaml is changed at least once."""

from __future__ import annotations

from typing import Any

import yaml

from tools.parts.helm import template

Values = dict[str, Any]
Document = dict[str, Any]

_ALERTS: dict[str, Values] = {
    "lagGrowing": {"window": "10s", "threshold": 5},
    "partitionBehind": {"threshold": 20.5},
    "noFlush": {"threshold": 10},
    "retrying": {"threshold": 1},
    "recordsSkipped": {"window": "1m", "threshold": 10},
    "deadLetters": {"window": "1m", "threshold": 10},
    "recordsLost": {"window": "1m", "threshold": 1000000},
    "driverRestarting": {"window": "5m", "threshold": 1},
    "notReady": {},
    "specRefused": {},
    "stuck": {},
    "operatorDown": {},
    "operatorErrors": {"window": "1m"},
    "operatorSlow": {"window": "1m", "threshold": 5},
    "operatorWatchSilent": {"window": "1m", "threshold": 60},
}
ALERTS = tuple(_ALERTS)
QUICK_ALERTS: Values = {name: {"for": "7s", "severity": "page", **more} for name, more in _ALERTS.items()}
"""With short times, for tests that run them."""

CASES: dict[str, Values] = {
    "default": {},
    "namespaced": {"watch": {"namespaces": ["shop", "billing"]}, "clusterId": "my-cluster"},
    "named cluster": {"clusterId": "prod-eu"},
    "other names": {"nameOverride": "sinks", "commonLabels": {"team": "data"}},
    "other full name": {"fullnameOverride": "lake-writer", "metrics": {"driverPodMonitor": {"enabled": True}}},
    "tag and registry": {
        "image": {"repository": "registry.example.com/data/s3sink", "tag": "1-rc1", "pullPolicy": "Always"},
        "imagePullSecrets": [{"name": "registry"}],
        "drivers": {"image": "registry.example.com/data/drivers:7", "pullPolicy": "Never"},
    },
    "digest": {"image": {"digest": "sha256:" + "0123456789abcdef" * 4}},
    "settings": {
        "watch": {"timeout": 60, "deadAfter": 300, "resyncInterval": 1200.5},
        "status": {"pollInterval": 0.5, "figuresInterval": 5, "staleAfter": 20},
        "workers": 16,
        "port": 9443,
        "drivers": {"port": 9090, "grace": 1000000, "rolling": 1, "allowUnsafeTemplates": True},
    },
    "somebody else's definition": {"crds": {"install": False}},
    "a definition that goes": {"crds": {"keep": False, "annotations": {"argocd.argoproj.io/sync-wave": "-1"}}},
    "somebody else's rights": {"rbac": {"create": False}, "serviceAccount": {"create": False, "name": "made-before"}},
    "rights for people": {
        "rbac": {"userRoles": {"create": True}},
        "serviceAccount": {"annotations": {"example.com/role": "s3sink"}},
    },
    "the pod": {
        "podAnnotations": {"example.com/scrape": "no"},
        "podLabels": {"example.com/tier": "control"},
        "resources": {"requests": {"cpu": 1, "memory": "256Mi"}, "limits": {"cpu": "2"}},
        "podSecurityContext": {"runAsUser": 1000650000, "fsGroup": 1000650000},
        "securityContext": {"runAsNonRoot": True},
        "extraEnv": [{"name": "TZ", "value": "UTC"}],
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "control", "operator": "Exists", "effect": "NoSchedule"}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]
                }
            }
        },
        "priorityClassName": "system-cluster-critical",
    },
    "a service monitor": {
        "metrics": {
            "service": {"port": 80, "annotations": {"example.com/owner": "data"}},
            "serviceMonitor": {"enabled": True, "interval": "15s", "labels": {"release": "prometheus"}},
            "driverPodMonitor": {"enabled": True, "interval": "20s", "labels": {"release": "prometheus"}},
        }
    },
    "pod monitors": {
        "watch": {"namespaces": ["shop"]},
        "clusterId": "my-cluster",
        "metrics": {
            "service": {"enabled": False},
            "podMonitor": {"enabled": True, "interval": "15s", "labels": {"release": "prometheus"}},
            "driverPodMonitor": {"enabled": True},
        },
    },
    "alerts": {
        "alerts": {
            "prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}},
            "configMap": {"enabled": True, "labels": {"prometheus": "main"}},
        }
    },
    "quick alerts": {
        "alerts": {
            "prometheusRule": {"enabled": True},
            "labels": {"team": "data"},
            "runbookUrl": "https://git.example.com/s3sink/docs/",
            **QUICK_ALERTS,
        }
    },
    "no alert": {
        "alerts": {"prometheusRule": {"enabled": True}, **{name: {"enabled": False} for name in ALERTS}},
    },
    "a dashboard": {
        "dashboard": {"enabled": True, "labels": {"dashboards": "yes"}, "annotations": {"grafana_folder": "Kafka"}}
    },
    "a network policy": {"networkPolicy": {"enabled": True}},
    "a narrow network policy": {
        "watch": {"namespaces": ["shop"]},
        "clusterId": "my-cluster",
        "helmTest": {"enabled": False},
        "networkPolicy": {
            "enabled": True,
            "metricsFrom": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}],
            "apiServerCidrs": ["10.0.0.1/32"],
            "apiServerPorts": [6443],
            "extraEgress": [{"ports": [{"port": 4317, "protocol": "TCP"}]}],
        },
    },
    "more objects": {
        "extraObjects": [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{{ .Release.Name }}-more"}},
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Namespace }}-text\n",
        ]
    },
}


def rendered(values: Values | None = None, *flags: str) -> list[Document]:
    return [document for document in yaml.safe_load_all(template(values, *flags)) if document]


def only(documents: list[Document], kind: str, name: str = "") -> Document:
    (found,) = (d for d in documents if d["kind"] == kind and name in ("", d["metadata"]["name"]))
    return found

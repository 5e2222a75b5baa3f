-- What the XA sink asks for beside the tables: to list prepared branches, and to look at and end other sessions.
GRANT XA_RECOVER_ADMIN, CONNECTION_ADMIN, PROCESS ON *.* TO 'tidegate'@'%';

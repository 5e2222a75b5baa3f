-- XA_RECOVER_ADMIN: the XA sink lists prepared branches. The others no sink needs: with them `tidegate xa --force` sees and ends sessions of
-- other users.
GRANT XA_RECOVER_ADMIN, CONNECTION_ADMIN, PROCESS ON *.* TO 'tidegate'@'%';
-- With this, a wait for a row that was in vain names the session that holds the row.
GRANT SELECT ON performance_schema.* TO 'tidegate'@'%';
